"""The transforms of `cppmill.beam`: what each takes, gives and refuses."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter

import apache_beam as beam
import cppmill_core
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam.coders import FastPrimitivesCoder, PickleCoder
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from configs import VOCABULARY
from cppmill import ConfigError
from cppmill.beam import (
    DOCUMENTS,
    REJECTS,
    TEXTS,
    WORDS,
    CountTokens,
    DetectPlatforms,
    Document,
    Encode,
    ReadCpp,
    ToBatches,
    Tokens,
    ToRows,
    WordCount,
    WriteTokens,
    tokens_schema,
)
from pipelines.library.beam.batches import BATCH_ROWS
from pipelines.library.beam.counts import MAX_PARTS, AddCounts
from pipelines.stages.scan import scanner_config
from schemas.coders import RecordBatchCoder, register_coders
from schemas.options import ScanOptions
from transforms.scan.kinds import Family
from transforms.scan.sums import add_counts, finish_counts, take_counts
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import facts_of
from transforms.tokens.token_files import write_rows

CUDA = "__global__ void f() {}\n"


@dataclasses.dataclass
class Text:
    """A row as a data class."""

    path: str
    content: str


@pytest.fixture(scope="module")
def kept(run):
    """The documents of a run, as a table."""
    return pq.read_table(sorted((run.out / "documents").glob("part-*")))


@pytest.fixture(scope="module")
def documents(kept):
    """Some of them, as a batch."""
    return kept.slice(0, 12).combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def tokenizer(run):
    return run.out / "tokenizer"


def table(batches, schema=None):
    """The rows of batches, in one order."""
    return pa.Table.from_batches(batches, schema).sort_by([("path", "ascending")])


def facts(tokenizer):
    loaded = cppmill_core.load_tokenizer(tokenizer)
    return facts_of(loaded.digest, loaded.vocab_size)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("part-*")}


def test_documents_are_read_with_a_row_for_each_that_is_not_kept(run, kept, run_transform):
    found = run_transform(beam.ptransform_fn(read_both)(str(run.sources)))
    assert table(found["documents"], TEXTS).equals(kept.select(TEXTS.names).sort_by("path"))
    rejects = pq.read_table(sorted((run.out / "documents").glob("rejects-*")))
    assert table(found["rejected"], REJECTS).equals(rejects.sort_by("path"))


def test_documents_are_redacted_as_those_of_a_run(run_transform, tmp_path):
    (tmp_path / "a.h").write_text("// by jane.doe@cppmill-mail.net\n")
    (found,) = run_transform(ReadCpp(sources=tmp_path, ingest={"redact": ["email"]}))
    assert found.schema.equals(TEXTS)
    (text,) = found.column("content").to_pylist()
    assert b"jane" not in text
    assert hashlib.sha256(text).hexdigest() == found.column("doc_id")[0].as_py()


def read_both(pipeline, sources):
    read = pipeline | ReadCpp(sources=sources, with_rejected=True)
    return {"documents": read.documents, "rejected": read.rejected}


def test_platforms_are_added_to_the_columns_of_any_table(documents, run_transform):
    given = documents.drop_columns(["platform_ids", "platform_info"])
    (found,) = run_transform(DetectPlatforms(), [given])
    assert found.schema.equals(DOCUMENTS)
    assert found.equals(documents)
    rows = [{"stars": 3, "content": CUDA}, {"stars": 4, "content": "int x;"}]
    (found,) = run_transform(DetectPlatforms(), rows)
    assert found.schema.names == ["stars", "content", "platform_ids", "platform_info"]
    assert ["cuda" in info for info in found.column("platform_info").to_pylist()] == [True, False]


@pytest.mark.parametrize("kind", ["dicts", "beam rows", "named tuples", "data classes", "tables", "dictionaries"])
def test_every_kind_of_row_has_the_ids_of_its_text(kind, documents, tokenizer, run_transform):
    texts = documents.select(["path", "content"])
    texts = texts.set_column(1, "content", texts.column("content").cast(pa.string()))
    rows = texts.to_pylist()
    given = {
        "dicts": rows,
        "beam rows": [beam.Row(**row) for row in rows],
        "named tuples": [Document("", "", row["path"], row["content"], 0, None, [], "") for row in rows],
        "data classes": [Text(**row) for row in rows],
        "tables": [pa.Table.from_batches([texts])],
        "dictionaries": [texts.set_column(1, "content", texts.column("content").dictionary_encode())],
    }[kind]
    found = table(run_transform(Encode(tokenizer=tokenizer), given))
    loaded = cppmill_core.load_tokenizer(tokenizer)
    assert found.schema.equals(tokens_schema(loaded.vocab_size, prefix=False))
    expected = documents.sort_by("path")
    assert found["doc_id"].combine_chunks().equals(expected["doc_id"])
    ends = {name: loaded.control_id(name) for name in ("BOS", "EOS")}
    ids = loaded.encode_batch(expected["content"], bos=ends["BOS"], eos=ends["EOS"])
    assert found["token_ids"].to_pylist() == ids.to_pylist()


def test_options_of_tokenizing_are_those_of_a_run(tokenizer, run_transform):
    (bare,) = run_transform(Encode(tokenizer=tokenizer, tokenize={"bos": False, "eos": False}), [{"content": "int x;"}])
    loaded = cppmill_core.load_tokenizer(tokenizer)
    assert bare.column("token_ids").to_pylist() == [loaded.encode("int x;").to_pylist()]


def test_rows_become_batches_by_window_and_of_bounded_size(run_transform):
    rows = [{"content": "x", "time": number % 2} for number in range(2 * BATCH_ROWS + 10)]
    stamp = beam.Map(lambda row: TimestampedValue(row, row["time"]))
    found = run_transform(stamp | beam.WindowInto(FixedWindows(1)) | ToBatches(), rows)
    assert all(len(set(batch.column("time").to_pylist())) == 1 for batch in found)
    assert max(batch.num_rows for batch in found) == BATCH_ROWS
    assert sum(batch.num_rows for batch in found) == len(rows)


def test_windows_are_counted_apart(run_transform):
    stamp = beam.Map(lambda row: TimestampedValue(row, row["time"]))
    rows = [{"content": "a", "time": 0}, {"content": "a", "time": 1}, {"content": "a", "time": 0}]
    counted = run_transform(stamp | beam.WindowInto(FixedWindows(1)) | CountTokens() | ToRows(WordCount), rows)
    assert Counter(counted) == Counter([WordCount(b"a", 2), WordCount(b"a", 1)])


@pytest.mark.parametrize("family", ["words", "terms"])
def test_counts_are_those_of_the_scan(family, run, kept, run_transform):
    found = pa.Table.from_batches(run_transform(CountTokens(family=family), kept.to_batches(max_chunksize=7)))
    assert found.sort_by(found.schema.names[0]).equals(scanned(run, family))


def scanned(run, family):
    """The counts of a run."""
    counts = pq.read_table(run.out / "counts" / (family if family == "words" else f"{family}.parquet"))
    return counts.sort_by(counts.schema.names[0])


def test_counts_of_every_family_add_up_to_those_of_the_scan(run, kept):
    scanner = cppmill_core.Scanner(scanner_config(ScanOptions(), VOCABULARY))
    for family in (Family.TERMS, Family.MORPHEMES, Family.NAMESPACES):
        parts = []
        for batch in kept.to_batches(max_chunksize=20):
            scanner.add(batch)
            parts += [counts for _, counts in take_counts(scanner, family)]
        assert len(parts) > 1
        found = pa.Table.from_batches(finish_counts(family, add_counts(family, parts)))
        expected = scanned(run, family)
        assert found.sort_by([(name, "ascending") for name in found.schema.names[:2]]).equals(
            expected.sort_by([(name, "ascending") for name in found.schema.names[:2]])
        )


def test_counts_add_up_in_any_order_and_pass_through_the_coder():
    parts = [
        pa.record_batch({"word": [b"a", bytes([98 + number % 3])], "count": pa.array([1, number], pa.uint64())})
        for number in range(3 * MAX_PARTS)
    ]
    add = AddCounts(Family.WORDS)
    one = add.create_accumulator()
    for part in parts:
        one = add.add_input(one, part.cast(WORDS))
    coder = add.get_accumulator_coder()
    halves = [coder.decode(coder.encode([part.cast(WORDS) for part in parts[first::2]])) for first in (1, 0)]
    other = add.merge_accumulators(halves)
    assert add.extract_output(one).equals(add.extract_output(other))
    total = sum(pc.sum(part.column("count")).as_py() for part in parts)
    assert pc.sum(add.extract_output(one).column("count")).as_py() == total
    assert len(one) <= MAX_PARTS


def test_files_do_not_depend_on_how_rows_come(run, kept, tokenizer, run_transform, tmp_path):
    for name, given in {"a": kept.to_batches(max_chunksize=5), "b": kept.sort_by("doc_id").to_batches()}.items():
        encode = Encode(tokenizer=tokenizer)
        written = run_transform(encode | WriteTokens(out=tmp_path / name, shards=4), given)
        assert sum(file.documents for file in written) == kept.num_rows
        assert sum(file.tokens for file in written) == run.receipt["dataset"]["tokens"]
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert len(files(tmp_path / "a")) == 4
    # An attempt that is repeated publishes what the first one has.
    out = OutputFolder(tmp_path / "a")
    shard = [pq.read_table(path).to_batches()[0] for path in [sorted((tmp_path / "a").glob("part-*"))[2]]]
    write_rows(2, [batch.slice(0, 1) for batch in shard] + [batch.slice(1) for batch in shard], out, facts(tokenizer))
    assert files(tmp_path / "a") == files(tmp_path / "b")
    footer = pq.read_metadata(sorted((tmp_path / "a").glob("part-*"))[0]).metadata
    assert footer[b"cppmill.tokenizer"].decode() == run.receipt["tokenizer"]["digest"]


def test_rows_of_tokens_are_written_as_batches_are(documents, tokenizer, run_transform, tmp_path):
    encode = Encode(tokenizer=tokenizer)
    run_transform(encode | WriteTokens(out=tmp_path / "batches"), [documents])
    write = WriteTokens(out=tmp_path / "rows", tokenizer=tokenizer)
    run_transform(encode | ToRows(Tokens) | write, [documents])
    assert files(tmp_path / "rows") == files(tmp_path / "batches") != {}


def test_nothing_is_pickled_between_steps(run, tokenizer, tmp_path):
    register_coders()
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    found = pipeline | ReadCpp(sources=run.sources) | DetectPlatforms()
    _ = found | Encode(tokenizer=tokenizer) | WriteTokens(out=tmp_path / "tokens")
    _ = found | CountTokens() | ToRows(WordCount)
    proto, context = pipeline.to_runner_api(return_context=True)
    used = {
        transform.unique_name: {type(part) for part in parts_of(context.coders.get_by_id(found.coder_id))}
        for transform in proto.components.transforms.values()
        for found in (proto.components.pcollections[name] for name in transform.outputs.values())
    }
    # Beam's own Reshuffle has a time that may be None.
    pickled = [name for name, parts in used.items() if parts & {PickleCoder, FastPrimitivesCoder}]
    assert [name for name in pickled if not name.startswith("ReadCpp/Spread/")] == []
    assert sum(RecordBatchCoder in parts for parts in used.values()) > 8


def parts_of(coder):
    """A coder and all that it is made of."""
    yield coder
    for part in coder._get_component_coders() or ():
        yield from parts_of(part)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda run: ReadCpp(sources=run.sources, ingest={"near_duplicate_similarity": 0.8}), "needs the whole corpus"),
        (lambda run: ReadCpp(sources=run.sources, ingest={"limits": 3}), r"ingest: options.limits = 3: .* limit\?"),
        (lambda run: ReadCpp(sources=run.sources, ingest={"detect_platforms": False}), "put DetectPlatforms behind"),
        (lambda run: CountTokens(family="token"), "family 'token': .* one of words, units, terms"),
        (lambda run: CountTokens(family="units"), "with a unit_pattern"),
        (lambda run: DetectPlatforms(platforms="none.toml"), r"--platforms none.toml: cannot be read"),
        (lambda run: Encode(tokenizer=run.out), r"there is no manifest\.json in it"),
        (lambda run: WriteTokens(out=run.out), "is there; give a folder without files"),
        (lambda run: WriteTokens(out="none", shards=0), "shards = 0: .* a whole number from 1 to"),
        (lambda run: WriteTokens(out="none", shards=1.5), "shards = 1.5: .* a whole number from 1 to"),
        (lambda run: WriteTokens(out=None), "out = None: .* a path or a URL"),
        (lambda run: WriteTokens(out="/dev/null"), "out: /dev/null is no folder"),
        (lambda run: ReadCpp(sources=5), "sources = 5: .* a path or a URL, or several"),
        (lambda run: ReadCpp(sources=[run.sources, 5]), "sources = 5: .* a path or a URL"),
        (lambda run: ReadCpp(sources=[]), "sources: it names no path or URL"),
        (lambda run: ReadCpp(sources=""), "sources = '': .* a path or a URL"),
        (lambda run: ReadCpp(sources=run.sources, ingest="limit"), "ingest = 'limit': .* options by their keys"),
        (lambda run: ReadCpp(sources=run.sources, threads=0), "threads = 0: .* from 1 to 1,024"),
        (lambda run: CountTokens(scan=[]), r"scan = \[\]: .* options by their keys"),
        (lambda run: CountTokens(vocab=5), "vocab = 5: .* a path or a URL"),
        (lambda run: CountTokens(memory_bytes=-1), "memory_bytes = -1: .* a whole number"),
        (lambda run: CountTokens(threads=True), "threads = True: .* from 1 to 1,024"),
        (lambda run: DetectPlatforms(threads="2"), "threads = '2': .* from 1 to 1,024"),
        (lambda run: DetectPlatforms(platforms="a\0b"), "platforms = 'a.x00b': .* a path or a URL"),
        (lambda run: Encode(tokenizer=None), "tokenizer = None: .* a path or a URL"),
        (lambda run: Encode(tokenizer="/dev/null"), "tokenizer: /dev/null: cannot be read"),
        (lambda run: Encode(tokenizer=run.out / "tokenizer", threads=2000), "threads = 2000: .* from 1 to 1,024"),
        (lambda run: Encode(tokenizer=run.out / "tokenizer", digest="x"), "digest = 'x': .* a SHA-256"),
        (lambda run: Encode(tokenizer=run.out / "tokenizer", tokenize=None), "tokenize = None: .* by their keys"),
        (lambda run: ToRows(int), "row_type = .*int.*: .* a named tuple"),
    ],
)
def test_what_cannot_be_used_is_refused_when_the_pipeline_is_made(make, message, run):
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    transform = make(run)
    source = pipeline if isinstance(transform, ReadCpp) else pipeline | beam.Create([{"content": ""}])
    with pytest.raises(ConfigError, match=message):
        _ = source | transform


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([{"text": "int x;"}], "the documents have no column 'content', only text"),
        ([{"content": "int x;"}, {"content": None}], "column 'content' is null in row 1 of a batch"),
        ([{"content": 3}], "column 'content' is int64, and must be readable as binary"),
        ([{"content": "x", "path": object()}], "column 'path' of the rows: Arrow cannot hold"),
        (["int x;"], "an element of type str is no row"),
        ([{}], "rows without any column"),
        ([{5: "x", "content": "x"}], "column 5 of the rows: its name is no text"),
    ],
)
def test_documents_without_text_end_the_pipeline_by_name(elements, message, tokenizer, run_transform):
    with pytest.raises(Exception, match=message):
        run_transform(Encode(tokenizer=tokenizer), elements)


@pytest.mark.parametrize("rows", [{"content": ["x"]}, {"doc_id": [5]}, {"doc_id": pa.array([None], pa.string())}])
def test_rows_that_have_no_doc_id_are_refused_by_name(rows, tokenizer, run_transform, tmp_path):
    with pytest.raises(Exception, match="'doc_id'"):
        run_transform(WriteTokens(out=tmp_path / "out", tokenizer=tokenizer), [pa.RecordBatch.from_pydict(rows)])


def test_a_worker_refuses_another_tokenizer(tokenizer, run_transform):
    with pytest.raises(Exception, match="Encode was given digest=0000.*; give that of the tokenizer in this place"):
        run_transform(Encode(tokenizer=tokenizer, digest="0" * 64), [{"content": "int x;"}])


def test_ids_of_no_or_of_several_tokenizers_are_not_written(
    documents, tokenizer, other_tokenizer, run_transform, tmp_path
):
    (rows,) = run_transform(Encode(tokenizer=tokenizer), [documents])
    (others,) = run_transform(Encode(tokenizer=other_tokenizer), [documents])
    write = WriteTokens(out=tmp_path / "out")
    with pytest.raises(Exception, match="ids of several tokenizers"):
        run_transform(write, [rows, others])
    with pytest.raises(Exception, match="do not say which tokenizer"):
        run_transform(write, [rows.replace_schema_metadata({})])
    with pytest.raises(Exception, match=r"shard 0 hold id \d+, the vocabulary has 8192 ids"):
        bare = rows.replace_schema_metadata({})
        run_transform(WriteTokens(out=tmp_path / "out", tokenizer=other_tokenizer), [bare])
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
