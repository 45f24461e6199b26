"""`cppmill sequences --cursor`: segments are cut at one place, and both sides are the ids of their own text."""

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from configs.exports import ExportConfig
from pipelines.console.progress import Reporters
from pipelines.exports import sequences
from schemas.errors import IntegrityError
from schemas.export_options import SequenceOptions
from schemas.options import TokenizeOptions
from transforms.exports.sequences.export import make_rows, pad_id, read_texts, sequences_schema
from transforms.exports.sequences.proofs import prove_sequences
from transforms.exports.sequences.segments import Encoding, make_segments
from transforms.records.manifests import read_manifest
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import token_shards

LENGTH = 1024


@pytest.fixture(scope="module")
def make(run, tmp_path_factory):
    """Make sequences of the run, in this process; give rows and manifest."""

    def export(**options):
        folder = tmp_path_factory.mktemp("cursors") / "out"
        given = SequenceOptions(**{"length": LENGTH, **options})
        sequences.run(ExportConfig(run=run.out, out=folder, options=given), Reporters())
        rows = [row for path in sorted(folder.rglob("part-*")) for row in pq.read_table(path).to_pylist()]
        return rows, read_manifest(OutputFolder(folder))

    return export


@pytest.fixture(scope="module")
def documents(run):
    """Text and ids of each document, by doc_id."""
    tokens = pq.read_table(run.out / "tokens", columns=["doc_id", "token_ids"]).to_pylist()
    shards = [pq.read_table(path).to_pylist() for path in sorted((run.out / "documents").glob("part-*"))]
    texts = {row["doc_id"]: row["content"] for rows in shards for row in rows}
    return {row["doc_id"]: (texts[row["doc_id"]], row["token_ids"]) for row in tokens}


@pytest.fixture(scope="module")
def tokenizer(run):
    return cppmill_core.Tokenizer.from_dir(run.out / "tokenizer")


def segments(rows):
    """Yield name, first token, ids, cursor and kind of filling in the middle, of every segment."""
    for row in rows:
        ends = [*row["starts"][1:], row["num_tokens"]]
        kinds = row.get("fim", [0] * len(ends))
        columns = (row["doc_ids"], row["first_tokens"], row["starts"], ends, row["cursors"], kinds)
        for name, first, start, end, cursor, kind in zip(*columns, strict=True):
            yield name, first, row["token_ids"][start:end], cursor, kind


@pytest.fixture(scope="module")
def cut(make):
    return make(cursor_rate=0.6)


def test_both_sides_of_a_cursor_are_the_ids_of_their_own_text(cut, documents, tokenizer):
    rows, _ = cut
    bos, eos = tokenizer.control_id("<BOS>"), tokenizer.control_id("<EOS>")
    inside = 0
    for name, first, ids, cursor, _ in segments(rows):
        text, whole = documents[name]
        if not cursor:
            assert ids == whole[first : first + len(ids)]
        elif len(whole) <= LENGTH:
            sides = [*tokenizer.encode(text[:cursor]).to_pylist(), *tokenizer.encode(text[cursor:]).to_pylist()]
            assert ids == [bos, *sides, eos]
            inside += ids != whole
    assert inside > 10


def test_the_bytes_of_every_document_are_all_there(cut, documents, tokenizer):
    parts = {}
    for name, first, ids, _, _ in segments(cut[0]):
        parts.setdefault(name, {})[first] = tokenizer.decode(ids, skip_control=True)
    joined = {name: b"".join(text for _, text in sorted(found.items())) for name, found in parts.items()}
    assert joined == {name: text for name, (text, _) in documents.items()}


def test_the_rate_holds_and_the_manifest_counts_what_was_cut(cut):
    rows, manifest = cut
    totals, cursors = manifest["totals"], [cursor for *_, cursor, _ in segments(rows)]
    assert manifest["options"]["cursor_rate"] == 0.6
    assert totals["segments_cut_at_cursor"] == np.count_nonzero(cursors)
    assert abs(np.count_nonzero(cursors) / len(cursors) - 0.6) < 0.08
    assert totals["tokens_in"] + totals["tokens_of_cursors"] == totals["tokens_in_sequences"]
    assert totals["tokens_of_cursors"] > 0


def test_the_seed_decides_and_the_option_leaves_other_exports_alone(make, cut):
    same, other, plain = make(cursor_rate=0.6), make(cursor_rate=0.6, seed=1), make()
    assert same[1]["digest"] == cut[1]["digest"] != other[1]["digest"]
    assert "cursor_rate" not in plain[1]["options"]
    assert "cursors" not in plain[0][0]


def test_what_is_rearranged_is_not_cut(make):
    rows, manifest = make(cursor_rate=1.0, fim_rate=0.5)
    found = [(bool(cursor), bool(kind)) for *_, cursor, kind in segments(rows)]
    assert (True, True) not in found
    assert manifest["totals"]["segments_cut_at_cursor"] == found.count((True, False)) > 0
    assert found.count((False, True)) > 0


def move_cursor(row):
    row["cursors"] = [cursor + bool(cursor) for cursor in row["cursors"]]


def lose_cursor(row):
    row["cursors"] = [0 for _ in row["cursors"]]


def change_id(row):
    row["token_ids"][row["num_tokens"] // 2] ^= 1


@pytest.mark.parametrize("harm", [move_cursor, lose_cursor, change_id, None])
def test_reading_back_finds_every_difference(run, tokenizer, tmp_path, harm):
    options, encoding = SequenceOptions(length=LENGTH, cursor_rate=1.0), Encoding(tokenizer, TokenizeOptions())
    texts = list(read_texts(OutputFolder(run.out), token_shards(run.receipt)[:1], options))
    made, ledger = make_segments(texts, options, encoding)
    pad, schema = pad_id(tokenizer), sequences_schema(tokenizer.vocab_size, options)
    rows = pa.Table.from_batches(make_rows(made, texts, options, pad_id=pad, schema=schema)).to_pylist()
    for row in rows if harm else []:
        harm(row)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    if harm:
        with pytest.raises(IntegrityError, match=r"rows\.parquet, from row 0"):
            prove_sequences(path, texts, options, encoding, pad_id=pad, ledger=ledger)
    else:
        assert prove_sequences(path, texts, options, encoding, pad_id=pad, ledger=ledger)["sequences"] == len(rows)


def test_cursors_in_repositories_are_refused(run, cppmill, tmp_path):
    flags = ["--length", "64", "--cursor", "0.5", "--repositories"]
    done = cppmill("sequences", run.out, "--out", tmp_path / "made", *flags, check=False)
    assert (done.returncode, (tmp_path / "made").exists()) == (2, False)
    assert "--repositories --cursor: cannot be combined" in done.stderr
