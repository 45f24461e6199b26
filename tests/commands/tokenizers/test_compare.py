"""`cppmill compare`: the figures of a finished run are those of its receipt, on any way to name its documents."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import distribution

import pyarrow.parquet as pq
import pytest

from pipelines.tokenizers.compare import named_places, parse_size
from pipelines.tokenizers.propose import propose_for_run
from pipelines.tokenizers.texts import BATCH_BYTES, documents_shards, read_shards, read_texts
from schemas.errors import ConfigError, IntegrityError
from schemas.options import IngestOptions
from tests.signing import rewrite
from transforms.storage.folder import OutputFolder

O200K = distribution("bpe-openai").locate_file("bpe_openai/data/o200k_base.tiktoken.gz")


@pytest.fixture(scope="module")
def compared(run, cppmill):
    """The records of three tokenizers on the run's documents."""
    tokenizer = run.out / "tokenizer"
    named = ("ours=" + str(tokenizer), "theirs=" + str(tokenizer / "tokenizer.json"), O200K)
    done = cppmill("compare", *named, "--on", run.out, "--json", "--corpus-bytes", "2GB", "--threads", 2)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_text_is_the_corpus_of_the_receipt(run, compared):
    text, receipt = compared[0], run.receipt
    assert {"digest": text["digest"], "documents": text["documents"], "bytes": text["bytes"]} == receipt["corpus"]
    assert set(text["projects"]) == {"numpy", "arrow"}


def test_tokens_are_those_of_the_dataset_but_for_bos_and_eos(run, compared):
    ours, theirs, foreign = compared[1:]
    dataset = run.receipt["dataset"]
    assert ours["tokens"] == theirs["tokens"] == dataset["tokens"] - 2 * dataset["documents"] != foreign["tokens"]
    assert ours["bytes_per_token"] == dataset["bytes"] / ours["tokens"]
    for name, number in (("ours", ours), ("theirs", theirs), ("o200k_base", foreign)):
        assert number["tokenizer"] == name
        assert number["lossy_documents"] == 0
        assert sum(project["tokens"] for project in number["projects"].values()) == number["tokens"]
        assert sum(bar["tokens"] for bar in number["token_lengths"]) == number["tokens"]
        assert number["corpus_seconds"] == pytest.approx(2000 / number["megabytes_per_second"])
    assert [row["library"].split()[0] for row in compared[1:]] == ["cppmill", "tokenizers", "tiktoken"]


def test_bands_and_unused_ids_are_those_of_the_token_shards(run, compared):
    ours, theirs, _ = compared[1:]
    used = set()
    for shard in sorted((run.out / "tokens").glob("part-*.parquet")):
        used.update(pq.read_table(shard, columns=["token_ids"])["token_ids"].combine_chunks().values.to_pylist())
    manifest = json.loads((run.out / "tokenizer/manifest.json").read_bytes())
    domain = {row["id"] for row in manifest["tokens"] if row["band"] == "domain"}
    assert ours["bands"]["domain"]["ids"] == len(domain)
    assert ours["bands"]["domain"]["never_used"] == len(domain - used)
    reserved = sum(last - first + 1 for first, last in manifest["reserved"])
    control = ours["bands"]["control"]["ids"]
    assert ours["never_used"]["ids"] == manifest["vocab_size"] - reserved - control - len(used - {2, 3})
    assert sum(band["share"] for band in ours["bands"].values()) == pytest.approx(1)
    assert theirs["bands"] is None


def test_the_sources_of_a_run_are_read_as_its_documents(run):
    options = IngestOptions(detect_platforms=False)
    folders = {"run": run.out, "documents": run.out / "documents", "sources": run.sources}
    found = {name: list(read_texts([str(path)], options, argument="--on")) for name, path in folders.items()}
    digests = {
        name: sorted(doc for rows in batches for doc in rows["doc_id"].to_pylist()) for name, batches in found.items()
    }
    assert digests["run"] == digests["documents"] == digests["sources"]
    assert len(digests["run"]) == run.receipt["corpus"]["documents"]
    assert max(sum(map(len, rows["content"].to_pylist())) for rows in found["run"]) <= BATCH_BYTES


def test_a_document_is_taken_once_and_a_sample_is_a_part(run, tmp_path):
    shutil.copytree(run.sources / "numpy", tmp_path / "copy")
    options = IngestOptions(detect_platforms=False)
    places = [str(run.sources / "numpy"), str(tmp_path / "copy")]
    (once,) = read_texts(places[:1], options, argument="--on")
    (both,) = read_texts(places, options, argument="--on")
    assert both["doc_id"].to_pylist() == once["doc_id"].to_pylist()
    (part,) = read_texts(places[:1], options.model_copy(update={"sample": 0.3}), argument="--on")
    assert set(part["doc_id"].to_pylist()) < set(once["doc_id"].to_pylist())


def test_the_tables_show_what_the_records_have(run, compared, cppmill):
    tokenizer = run.out / "tokenizer"
    shown = cppmill("compare", f"ours={tokenizer}", O200K, "--on", run.out, "--corpus-bytes", "2GB").stdout
    ours, _, foreign = compared[1:]
    lines = shown.splitlines()
    assert f"{compared[0]['documents']:,} documents, {compared[0]['bytes']:,} bytes" in lines[0]
    (row,) = [line for line in lines if line.startswith("ours ")]
    assert f" {ours['bytes_per_token']:.3f} " in row
    assert f" {ours['identifiers']['tokens_per_identifier']:.3f} " in row
    (total,) = [line for line in lines if line.startswith("all ")]
    assert total.split()[-2:] == [f"{one['bytes_per_token']:.3f}" for one in (ours, foreign)]
    assert f"  {foreign['longest_tokens'][0]['bytes']:>4} bytes" in shown
    assert foreign["longest_tokens"][0]["token"] in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{run}/none", "--on", "{run}"), "no tokenizer; give a directory"),
        (("{run}/tokenizer", "{run}/tokenizer", "--on", "{run}"), "two have this name; give them names"),
        (("{run}/tokenizer", "--on", "{run}/none"), "does not exist"),
        (("{run}/tokenizer", "--on", "{run}/proofs"), "no document in it"),
        (("{run}/tokenizer", "--on", "{run}", "--corpus-bytes", "much"), "--corpus-bytes much: not a size"),
    ],
)
def test_what_cannot_be_compared_is_said(run, cppmill, arguments, message):
    done = cppmill("compare", *(argument.format(run=run.out) for argument in arguments), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert all(line.startswith(("error: ", "left out: ")) for line in done.stderr.splitlines())


def test_the_name_of_a_published_tokenizer_is_its_short_name():
    assert named_places(["llama3.1", "a/qwen2.5", "b/o200k_base.tiktoken.gz", "x=qwen2.5"]) == [
        ("llama3.1", "llama3.1"),
        ("qwen2", "a/qwen2.5"),
        ("o200k_base", "b/o200k_base.tiktoken.gz"),
        ("x", "qwen2.5"),
    ]


def test_sizes_are_read_as_they_are_written():
    assert [parse_size(text) for text in ("1TB", "2.5 GB", "12")] == [10**12, 2_500_000_000, 12]
    for text in ("", "0", "TB", "1 tb", "-1MB"):
        with pytest.raises(ConfigError, match="not a size"):
            parse_size(text)


def more_documents(out):
    file = sorted((out / "documents").glob("part-*"))[0]
    (out / "documents" / "part-0.parquet").write_bytes(file.read_bytes())


def other_documents(out):
    first, *_, last = sorted((out / "documents").glob("part-*"))
    first.write_bytes(last.read_bytes())


def test_documents_that_the_receipt_does_not_name_are_not_of_the_run(copied_run):
    before = list(read_texts([str(copied_run.out)], IngestOptions(), argument="--on"))
    more_documents(copied_run.out)
    name = str(copied_run.out)
    assert list(read_texts([name], IngestOptions(), argument="--on")) == before
    assert "documents/part-0.parquet" not in documents_shards(name, argument="RUN")[1]


def test_the_documents_folder_of_a_run_is_held_to_its_receipt(copied_run):
    name = str(copied_run.out / "documents")
    before = list(read_texts([name], IngestOptions(), argument="--on"))
    more_documents(copied_run.out)
    assert list(read_texts([name], IngestOptions(), argument="--on")) == before
    assert "part-0.parquet" not in documents_shards(name, argument="RUN")[1]
    (copied_run.out / "documents/part-0.parquet").unlink()
    other_documents(copied_run.out)
    with pytest.raises(IntegrityError, match="not the file that the receipt names"):
        next(read_texts([name], IngestOptions(), argument="--on"))
    with pytest.raises(IntegrityError, match="not the file that the receipt names"):
        documents_shards(name, argument="RUN")


@pytest.mark.parametrize("content", [b"", b"PAR1" + bytes(8) + b"PAR1"])
def test_a_documents_shard_that_cannot_be_read_is_named(copied_run, content):
    shard = sorted((copied_run.out / "documents").glob("part-*"))[0]
    shard.write_bytes(content)
    for place in (copied_run.out, copied_run.out / "documents"):
        with pytest.raises(IntegrityError, match=rf"{shard.name}: damaged"):
            next(read_texts([str(place)], IngestOptions(), argument="--on"))
    (copied_run.out / "receipt.json").unlink()
    with pytest.raises(IntegrityError, match=rf"{shard.name}: damaged"):
        next(read_shards(OutputFolder(copied_run.out), [f"documents/{shard.name}"], ["content"]))


def test_a_run_without_its_documents_is_no_source(copied_run):
    shutil.rmtree(copied_run.out / "documents")
    with pytest.raises(IntegrityError, match="not the file that the receipt names"):
        next(read_texts([str(copied_run.out)], IngestOptions(), argument="--on"))


def test_names_are_proposed_from_the_counts_that_the_receipt_names(copied_run):
    words = copied_run.out / "counts/words"
    proposed = propose_for_run(str(copied_run.out))
    shutil.copy(words / "part-000.parquet", words / "part-999.parquet")
    assert propose_for_run(str(copied_run.out)) == proposed
    shutil.copy(words / "part-001.parquet", words / "part-000.parquet")
    with pytest.raises(IntegrityError, match=r"part-000\.parquet: missing, or not the file that the receipt names"):
        propose_for_run(str(copied_run.out))


def test_nothing_is_told_of_tokens_that_were_changed(copied_run, cppmill):
    first, *_, last = sorted((copied_run.out / "tokens").glob("part-*"))
    first.write_bytes(last.read_bytes())
    for command in (
        ["prove-absent", copied_run.out, "0" * 64],
        ["provenance", copied_run.out, "--out", copied_run.out.parent / "card"],
    ):
        done = cppmill(*command, check=False)
        assert (done.returncode, "not the file that the receipt names" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("name", ["tokenizer/vocab.tsv", "platform_vocab.json"])
def test_no_card_is_made_beside_a_file_that_was_changed(copied_run, cppmill, name):
    (copied_run.out / name).write_bytes((copied_run.out / name).read_bytes() + b"\n")
    done = cppmill("provenance", copied_run.out, "--out", copied_run.out.parent / "card", check=False)
    assert (done.returncode, f"{name}: missing, or not the file" in done.stderr) == (1, True), done.stderr


def test_documents_and_receipts_that_were_changed_are_refused(copied_run, cppmill):
    other_documents(copied_run.out)
    for command in (
        ["compare", copied_run.out / "tokenizer", "--on", copied_run.out],
        ["vocab", "propose", copied_run.out],
        ["provenance", copied_run.out, "--out", copied_run.out.parent / "card"],
        ["report", copied_run.out, "--left-out", "--out", copied_run.out.parent / "page.html"],
    ):
        done = cppmill(*command, check=False)
        assert (done.returncode, "not the file that the receipt names" in done.stderr) == (1, True), done.stderr
    rewrite(copied_run.out / "receipt.json", lambda value: value["corpus"].update(bytes=1))
    with pytest.raises(IntegrityError, match="its digest is"):
        next(read_texts([str(copied_run.out)], IngestOptions(), argument="--on"))
