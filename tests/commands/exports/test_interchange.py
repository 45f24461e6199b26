"""Others read what a run wrote: tokenizers, transformers, datasets, duckdb, polars.

Each is imported where it is used, as every worker of the tests imports this file.
"""

import pyarrow.parquet as pq
import pytest
import tokenizers

CONTROL = 'x <EOS> "<BOS>" <FIM_PREFIX>y // <PAD><UNK> <CODE_START>\n'


@pytest.fixture(scope="module")
def documents(run):
    """Every document of the run that is valid UTF-8, with its token ids (BOS and EOS taken off)."""
    found = {}
    for path in (run.out / "documents").glob("part-*.parquet"):
        for row in pq.read_table(path, columns=["doc_id", "content"]).to_pylist():
            found[row["doc_id"]] = row["content"]
    ids = {}
    for path in (run.out / "tokens").glob("part-*.parquet"):
        for row in pq.read_table(path, columns=["doc_id", "token_ids"]).to_pylist():
            ids[row["doc_id"]] = row["token_ids"][1:-1]
    assert ids.keys() == found.keys()
    texts = {}
    for doc_id, content in found.items():
        try:
            texts[content.decode()] = ids[doc_id]
        except UnicodeDecodeError:
            continue
    assert len(texts) > 40
    return texts


def test_tokenizers_gives_our_ids_on_every_document(run, documents):
    theirs = tokenizers.Tokenizer.from_file(str(run.out / "tokenizer" / "tokenizer.json"))
    theirs.encode_special_tokens = True
    encoded = theirs.encode_batch_fast(list(documents), add_special_tokens=False)
    assert [one.ids for one in encoded] == list(documents.values())


def test_transformers_gives_our_ids_on_every_document(run, documents):
    import transformers

    theirs = transformers.AutoTokenizer.from_pretrained(run.out / "tokenizer")
    assert len(theirs) == run.receipt["tokenizer"]["vocab_size"]
    encoded = theirs(list(documents), add_special_tokens=False)["input_ids"]
    assert encoded == list(documents.values())


def test_control_text_is_ordinary_text_to_transformers_and_to_us(run):
    import cppmill_core
    import transformers

    ours = cppmill_core.Tokenizer.from_dir(run.out / "tokenizer").encode(CONTROL).to_pylist()
    theirs = transformers.AutoTokenizer.from_pretrained(run.out / "tokenizer")
    assert theirs(CONTROL, add_special_tokens=False)["input_ids"] == ours
    assert min(ours) >= 64
    assert theirs.decode(ours) == CONTROL


def test_datasets_reads_the_shards(run, tmp_path):
    import datasets

    loaded = datasets.load_dataset(
        "parquet", data_files=str(run.out / "tokens" / "*.parquet"), split="train", cache_dir=str(tmp_path)
    )
    assert loaded.num_rows == run.receipt["dataset"]["documents"]
    assert sum(loaded["num_tokens"]) == run.receipt["dataset"]["tokens"]


def test_duckdb_reads_the_shards(run):
    import duckdb

    columns = "count(*), sum(num_tokens), max(list_max(token_ids)), sum(len(token_ids))"
    query = f"select {columns} from '{run.out}/tokens/*.parquet'"
    dataset = run.receipt["dataset"]
    expected = (dataset["documents"], dataset["tokens"], dataset["max_token_id"], dataset["tokens"])
    assert duckdb.sql(query).fetchall() == [expected]


def test_polars_reads_the_shards(run):
    import polars

    table = polars.read_parquet(f"{run.out}/tokens/*.parquet")
    dataset = run.receipt["dataset"]
    assert table.height == dataset["documents"]
    assert table["token_ids"].list.max().max() == dataset["max_token_id"]
    assert table["num_bytes"].sum() == dataset["bytes"]
