"""Whole runs on prose: text files with a separator, to tokenizers without anything of C++."""

import json
from pydoc_data.topics import topics

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

SEPARATOR = "<|endoftext|>"
PAGES = [topics[name] for name in sorted(topics)]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A folder with the pages of Python's help in two files, and a file that is no text."""
    folder = tmp_path_factory.mktemp("prose")
    for name, pages in (("a.txt", PAGES[::2]), ("b.TXT", PAGES[1::2])):
        (folder / name).write_text(f"{SEPARATOR}\n".join(pages))
    (folder / "c.cpp").write_text("int c;")
    return folder


def make(cppmill, text, out, *options):
    """Run and verify; return the rows of the dataset by document, and the receipt."""
    cppmill("run", text, "--out", out, *options)
    cppmill("verify", out)
    documents = pq.read_table(sorted((out / "documents").glob("part-*")), columns=["doc_id", "content"]).to_pylist()
    contents = {row["doc_id"]: row["content"].decode() for row in documents}
    rows = pq.read_table(sorted((out / "tokens").glob("part-*")), columns=["doc_id", "token_ids"]).to_pylist()
    ids = {contents[row["doc_id"]]: row["token_ids"] for row in rows}
    return ids, json.loads((out / "receipt.json").read_bytes())


def test_superwords_of_sentences_and_the_id_of_the_separator(text, cppmill, tmp_path):
    options = ("--vocab-size", "2048", "--unit-pattern", "text-sentences-1", "--superwords-after", "0.8")
    ids, receipt = make(cppmill, text, tmp_path / "out", "--profile", "text-16k", *options)
    assert set(ids) == set(PAGES)
    assert receipt["ledger"]["documents"]["filtered"] == {"extension": 1}
    theirs = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer" / "tokenizer.json"))
    for page, found in list(ids.items())[:20]:
        assert found == [*theirs.encode(page).ids, theirs.token_to_id(SEPARATOR)]
    manifest = json.loads((tmp_path / "out" / "tokenizer" / "manifest.json").read_bytes())
    assert (manifest["reserved"], [row["token"] for row in manifest["tokens"]]) == ([], [SEPARATOR])
    words = [theirs.decode([number]).strip() for number in range(2048)]
    assert any(" " in word for word in words)


def test_a_small_sentencepiece_model_has_nothing_of_cpp(text, cppmill, tmp_path):
    ids, receipt = make(cppmill, text, tmp_path / "out", "--profile", "text-sentencepiece-1k")
    assert receipt["tokenizer"]["vocab_size"] == 1024
    assert {found[-1] for found in ids.values()} == {1}
    pieces = (tmp_path / "out" / "tokenizer" / "vocab.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in pieces[1:3]] == ["<UNK>", SEPARATOR]
    assert sum(line.endswith("\tnormal") for line in pieces) == 1024 - 2 - 256


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", 'build.specials=["<|user|>"]'], "none is <|endoftext|>, which documents have"),
        (["--set", "tokenize.bos=true"], "none is <BOS>, which documents have"),
        (["--vocab-size", "200"], "not allowed; a vocabulary of the kind bpe has 257 ids before any is learned"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_anything_is_read(options, said, text, cppmill, tmp_path):
    done = cppmill("run", text, "--out", tmp_path / "out", "--profile", "text-16k", *options, check=False)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_table_without_a_column_for_the_text_is_refused_with_those_that_it_has(cppmill, tmp_path):
    pq.write_table(pa.table({"title": ["a"], "body": ["b"]}), tmp_path / "two.parquet")
    done = cppmill("ingest", tmp_path / "two.parquet", "--out", tmp_path / "out", "--profile", "text-16k", check=False)
    said = "two.parquet: no 'content'; name the text's with --content-column: title, body. "
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr
