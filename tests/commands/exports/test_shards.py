"""`cppmill shards` on a real run: every document once, in its split, whole or cut, whatever carried it out."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cppmill_core import Tokenizer

from configs.exports import load_export_config
from configs.tables import SHARD_FLAGS
from pipelines.console.progress import Reporters
from pipelines.exports import shards as program
from schemas.digests import canonical_json
from schemas.errors import ConfigError, IntegrityError, ResourceError
from schemas.export_options import ShardOptions
from tests.signing import mend_tokenizer, rewrite, seal
from transforms.exports.shards.formats import read_bin, read_index
from transforms.exports.shards.splits import SPLITS, split_of
from transforms.records.manifests import MANIFEST, verify_export
from transforms.records.receipts import RECEIPT
from transforms.storage.folder import OutputFolder

SHARD_TOKENS = 20_000
BY_PROJECT = {"--validation-fraction": "0.5", "--shard-tokens": str(SHARD_TOKENS)}
BY_DOCUMENT = {"--split-by": "document", "--validation-fraction": "0.2", "--shard-tokens": str(SHARD_TOKENS)}


class Listening(Reporters):
    """Keeps what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def note(self, message: str) -> None:
        self.said.append(message)


def export(run: Path, out: Path, **flags: Any) -> list[str]:
    """Make an export in this process and return what was said."""
    reporter = Listening()
    given = {"--out": str(out), **flags}
    config = load_export_config(ShardOptions, run=str(run), values=given, flags=SHARD_FLAGS)
    program.run(config, reporter)
    return reporter.said


def documents_of(run: Path) -> pa.Table:
    """All rows of a run's token shards, in the order of an export."""
    names = [shard["path"] for shard in json.loads((run / RECEIPT).read_bytes())["dataset"]["shards"]]
    return pa.concat_tables([pq.read_table(run / name) for name in names])


def expected_documents(run: Path, split: str, by: str, fraction: float) -> list[list[int]]:
    rows = documents_of(run)
    names = rows["project" if by == "project" else "doc_id"].to_pylist()
    ids = rows["token_ids"].to_pylist()
    return [
        document
        for name, document in zip(names, ids, strict=True)
        if split_of(name, validation_fraction=fraction) == split
    ]


def stream_of(out: Path, split: str) -> np.ndarray:
    files = [read_bin(path) for path in sorted(out.glob(f"shards/cpp_{split}_*.bin"))]
    return np.concatenate([*files, np.empty(0, dtype=np.uint16)])


def pairs_of(out: Path, split: str) -> list[list[int]]:
    """The documents of Megatron pairs, by what the indices say."""
    documents = []
    for path in sorted(out.glob(f"shards/cpp_{split}_*.idx")):
        index = read_index(path)
        ids = np.fromfile(path.with_suffix(".bin"), dtype=index.kind)
        starts = index.pointers // np.dtype(index.kind).itemsize
        sequences = [ids[start : start + length].tolist() for start, length in zip(starts, index.lengths, strict=True)]
        assert sum(map(len, sequences)) == len(ids)
        assert index.documents.tolist() == list(range(len(sequences) + 1))
        documents += sequences
    return documents


def tree(out: Path) -> dict[str, bytes]:
    files = [path for path in out.rglob("*") if path.is_file() and ".cache" not in path.parts and path.name != ".lock"]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def shards(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`.bin` shards by project; not to be changed."""
    out = tmp_path_factory.mktemp("shards") / "bin"
    export(run.out, out, **BY_PROJECT)
    return out


@pytest.mark.parametrize("flags", [BY_PROJECT, BY_DOCUMENT], ids=["project", "document"])
@pytest.mark.parametrize("bos", ["dataset", "document", "none"])
def test_the_files_of_a_split_are_its_documents_each_once(run: Any, tmp_path: Path, flags: dict, bos: str) -> None:
    export(run.out, tmp_path / "out", **flags, **{"--bos": bos})
    cut = {"dataset": slice(None), "document": slice(0, -1), "none": slice(1, -1)}[bos]
    by, fraction = flags.get("--split-by", "project"), float(flags["--validation-fraction"])
    for split in SPLITS:
        documents = [document[cut] for document in expected_documents(run.out, split, by, fraction)]
        assert documents
        assert stream_of(tmp_path / "out", split).tolist() == [id_ for document in documents for id_ in document]


@pytest.mark.parametrize("flags", [BY_PROJECT, BY_DOCUMENT], ids=["project", "document"])
def test_pairs_are_the_documents_of_a_split_each_once(run: Any, tmp_path: Path, flags: dict) -> None:
    export(run.out, tmp_path / "out", **flags, **{"--format": "megatron"})
    by, fraction = flags.get("--split-by", "project"), float(flags["--validation-fraction"])
    for split in SPLITS:
        assert pairs_of(tmp_path / "out", split) == expected_documents(run.out, split, by, fraction)
    assert verify_export(OutputFolder(tmp_path / "out")) == []


def test_documents_decode_to_the_bytes_of_their_sources(run: Any, shards: Path) -> None:
    tokenizer = Tokenizer.from_dir(run.out / "tokenizer")
    bos = tokenizer.control_id("<BOS>")
    texts = [
        content
        for name in sorted((run.out / "documents").glob("part-*"))
        for content in pq.read_table(name, columns=["content"])["content"].to_pylist()
    ]
    streams = [stream_of(shards, split) for split in SPLITS]
    assert all(stream[0] == bos for stream in streams)
    found = [
        tokenizer.decode(pa.array(document[1:]))
        for stream in streams
        for document in np.split(stream, np.flatnonzero(stream == bos)[1:])
    ]
    assert sorted(found) == sorted(texts)


def test_no_project_is_in_both_splits_and_files_are_full(run: Any, shards: Path) -> None:
    projects = set(documents_of(run.out)["project"].to_pylist())
    assert {split_of(project, validation_fraction=0.5) for project in projects} == set(SPLITS)
    for split in SPLITS:
        sizes = [len(read_bin(path)) for path in sorted(shards.glob(f"shards/cpp_{split}_*.bin"))]
        assert len(sizes) > 1
        assert set(sizes[:-1]) == {SHARD_TOKENS}
        assert 0 < sizes[-1] <= SHARD_TOKENS
    assert sorted(path.name for path in shards.glob("shards/cpp_val_*"))[0] == "cpp_val_000000.bin"


def test_the_manifest_adds_up_to_the_dataset(run: Any, shards: Path) -> None:
    manifest = json.loads((shards / MANIFEST).read_bytes())
    dataset = run.receipt["dataset"]
    for name in ("documents", "bytes"):
        assert sum(total[name] for total in manifest["totals"].values()) == dataset[name]
    assert (
        sum(total["tokens"] for total in manifest["totals"].values()) == dataset["tokens"] - dataset["documents"]
    )  # no EOS
    for file in manifest["files"]:
        assert file["tokens"] == len(read_bin(shards / file["path"]))
    assert verify_export(OutputFolder(shards)) == []


PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.mark.parametrize(
    ("kind", "ways"),
    [("bin", [{"--threads": "1"}, {"--threads": "2"}]), ("megatron", [{"--threads": "1"}, {"--": PROCESSES}])],
    ids=["bin, threads", "megatron, processes"],
)
@pytest.mark.usefixtures("forked_workers")
def test_bytes_do_not_depend_on_threads_and_processes(run: Any, tmp_path: Path, kind: str, ways: list) -> None:
    trees = []
    for number, way in enumerate(ways):
        export(run.out, tmp_path / str(number), **BY_PROJECT, **way, **{"--format": kind})
        trees.append(tree(tmp_path / str(number)))
    assert trees[0] == trees[1]


def test_a_dataset_that_was_cut_otherwise_has_the_same_documents_in_each_split(
    run: Any, shards: Path, cppmill: Any, tmp_path: Path
) -> None:
    flags = ("--tokenizer", run.out / "tokenizer", "--unit-bytes", 1 << 18)
    cppmill("run", run.sources, "--out", tmp_path / "run", *flags)
    export(tmp_path / "run", tmp_path / "out", **BY_PROJECT)
    manifests = [json.loads((out / MANIFEST).read_bytes()) for out in (shards, tmp_path / "out")]
    assert len(documents_of(run.out)) == len(documents_of(tmp_path / "run"))
    assert (
        run.receipt["dataset"]["shards"] != json.loads((tmp_path / "run" / RECEIPT).read_bytes())["dataset"]["shards"]
    )
    assert manifests[0]["totals"] == manifests[1]["totals"]  # the digest of a split's documents among them


def test_an_export_that_was_killed_goes_on(run: Any, shards: Path, processes: Any, tmp_path: Path) -> None:
    flags = [word for pair in BY_PROJECT.items() for word in pair]
    command = ["shards", run.out, "--out", tmp_path / "out", *flags]
    with processes.command(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while not list((tmp_path / "out").glob("shards/_unit-*")):
            assert process.poll() is None, process.stderr and process.stderr.read()
        process.send_signal(signal.SIGKILL)
    stood = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("shards/_unit-*")}
    assert not (tmp_path / "out" / MANIFEST).exists()
    export(run.out, tmp_path / "out", **BY_PROJECT)
    assert tree(tmp_path / "out") == tree(shards)
    assert {path: path.stat().st_mtime_ns for path in stood} == stood


@pytest.mark.parametrize("kind", ["bin", "megatron"])
def test_a_file_that_the_machine_refuses_is_named(run: Any, tmp_path: Path, limited: Any, kind: str) -> None:
    limited(resource.RLIMIT_FSIZE, 20_000)
    with pytest.raises(ResourceError, match=r"shards/cpp_train_000000\.bin: a file may have no more bytes here"):
        export(run.out, tmp_path / "out", **{"--format": kind})


def test_an_export_that_was_killed_behind_its_first_file_goes_on(run: Any, shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(shards, out, copy_function=shutil.copy2)
    (out / MANIFEST).unlink()
    for path in out.rglob("_unit-*"):
        path.unlink()
    export(run.out, out, **BY_PROJECT)
    assert tree(out) == tree(shards)


def test_an_export_that_lost_its_receipts_and_its_cache_is_made_again(run: Any, shards: Path, tmp_path: Path) -> None:
    out = shutil.copytree(shards, tmp_path / "out")
    shutil.rmtree(out / ".cache")
    for path in (out / "shards").glob("_unit-*.json"):
        path.unlink()
    export(run.out, out, **BY_PROJECT)
    assert (out / MANIFEST).read_bytes() == (shards / MANIFEST).read_bytes()
    assert list(verify_export(OutputFolder(out))) == []


def test_a_second_call_changes_nothing_and_another_one_leaves_nothing_behind(
    run: Any, shards: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(shards, out, copy_function=shutil.copy2)
    before = {path: path.stat().st_mtime_ns for path in (out / "shards").iterdir()}
    export(run.out, out, **BY_PROJECT)
    assert {path: path.stat().st_mtime_ns for path in (out / "shards").iterdir()} == before
    export(run.out, out, **BY_DOCUMENT, **{"--name": "other"})
    assert not list((out / "shards").glob("cpp_*"))
    assert verify_export(OutputFolder(out)) == []


def test_a_changed_file_is_found_and_made_again(run: Any, shards: Path, cppmill: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(shards, out, copy_function=shutil.copy2)
    path = out / "shards" / "cpp_train_000000.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    done = cppmill("verify", out, check=False)
    assert done.returncode == 1
    assert "cpp_train_000000.bin: its SHA-256 is" in done.stdout
    export(run.out, out, **BY_PROJECT)
    assert tree(out) == tree(shards)
    assert "everything matches the manifest" in cppmill("verify", out).stdout


def resize_vocabulary(run: Path, vocab_size: int) -> None:
    """Give the tokenizer of a run more ids, which are reserved."""
    file = run / "tokenizer" / "tokenizer.json"
    rules = json.loads(file.read_bytes())
    first = len(rules["model"]["vocab"])
    rules["model"]["vocab"] |= {f"<RESERVED_{id_}>": id_ for id_ in range(first, vocab_size)}
    file.write_text(json.dumps(rules, ensure_ascii=False))

    def reserve(manifest: Any) -> None:
        manifest["vocab_size"] = vocab_size
        manifest["reserved"].append([first, vocab_size - 1])

    rewrite(run / "tokenizer" / "manifest.json", reserve)
    mend_tokenizer(run)
    rewrite(run / RECEIPT, lambda value: value["tokenizer"].update(vocab_size=vocab_size))
    rewrite(run / RECEIPT, seal)


def test_a_vocabulary_beyond_uint16_is_refused_with_what_to_do(copied_run: Any, tmp_path: Path) -> None:
    resize_vocabulary(copied_run.out, 65_537)
    with pytest.raises(ConfigError, match=r"ids below 65,536, .* has 65,537 ids; take --format megatron"):
        export(copied_run.out, tmp_path / "export")
    export(copied_run.out, tmp_path / "export", **BY_DOCUMENT, **{"--format": "megatron"})
    assert {read_index(path).kind for path in (tmp_path / "export").glob("shards/*.idx")} == {"<i4"}
    assert pairs_of(tmp_path / "export", "val") == expected_documents(copied_run.out, "val", "document", 0.2)


def test_what_does_not_add_up_to_the_dataset_has_no_manifest(copied_run: Any, tmp_path: Path) -> None:
    receipt = json.loads((copied_run.out / RECEIPT).read_bytes())
    receipt["dataset"]["digest"] = "0" * 64
    seal(receipt)
    (copied_run.out / RECEIPT).write_bytes(canonical_json(receipt))
    with pytest.raises(IntegrityError, match="both splits have dataset_digest"):
        export(copied_run.out, tmp_path / "export", **BY_PROJECT)
    assert not (tmp_path / "export" / MANIFEST).exists()


def test_an_empty_split_is_reported_and_the_paths_for_megatron_are_printed(run: Any, tmp_path: Path) -> None:
    said = export(run.out, tmp_path / "out", **{"--validation-fraction": "0", "--format": "megatron"})
    assert any("val is empty: no project hashes into it" in line for line in said)
    (line,) = [line for line in said if "data-path" in line]
    match = re.fullmatch(r"--train-data-path (\d+) (\S+)", line)
    assert match
    assert int(match[1]) == run.receipt["dataset"]["tokens"]
    assert Path(f"{match[2]}.idx").exists()


def test_a_document_longer_than_a_stretch_leaves_no_empty_pair(run: Any, tmp_path: Path) -> None:
    flags = {**BY_PROJECT, "--shard-tokens": "4096", "--format": "megatron"}
    export(run.out, tmp_path / "out", **flags)
    assert max(documents_of(run.out)["num_tokens"].to_pylist()) > 2 * 4096
    files = list((tmp_path / "out" / "shards").glob("cpp_*.bin"))
    assert min(path.stat().st_size for path in files) > 0
    for split in SPLITS:
        assert pairs_of(tmp_path / "out", split) == expected_documents(run.out, split, "project", 0.5)


def test_all_problems_of_the_flags_are_reported_at_once(run: Any) -> None:
    load = partial(load_export_config, ShardOptions, run=str(run.out), flags=SHARD_FLAGS)
    with pytest.raises(ConfigError) as caught:
        load(values={"--out": "x", "--format": "fox", "--name": "a/b", "--shard-tokens": "1"})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "--format fox",
        "--shard-tokens 1",
        "--name a/b",
    ]
