"""The hostile corpus, through the transforms on Beam's local runner and within a bound on memory."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from pipelines.engines.graph import RunFlow
from schemas.coders import register_coders
from schemas.ledger import Ledger
from schemas.options import IngestOptions
from schemas.units import Stage, UnitReceipt
from transforms.ingest.dedup.exact import choose_duplicates, clear_duplicates, duplicates_name, merge_duplicates
from transforms.ingest.first_pass import FirstPassSettings, fingerprint_inputs
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.plan import add_digests, find_first_pass, look_up_choices, plan_ingest
from transforms.ingest.second_pass import WriteSettings, write_units
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

BOMB_BYTES = 400 << 20
BROKEN = {
    "truncated.tar.gz": "truncated",
    "not_a.tar": "not_an_archive",
    "bad_crc.zip": "corrupt",
    "truncated.zip": "truncated",
    "bad_lines.jsonl": "bad_record",
    "truncated.jsonl.gz": "truncated",
    "wrong_column.parquet": "missing_column",
    "corrupt.parquet": "corrupt",
}


def test_the_hostile_corpus_goes_through_the_pipeline(hostile_corpus: Path, tmp_path: Path) -> None:
    out, options = OutputFolder(tmp_path / "out"), IngestOptions(unit_bytes=1 << 16)
    sources = [str(hostile_corpus / "files"), str(hostile_corpus / "archives")]
    receipts = run_pipelines(sources, out, options)
    ledger = Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.key) for receipt in receipts)
    check_expectations(hostile_corpus, out, ledger)


def test_the_pipeline_and_the_functions_agree(hostile_corpus: Path, tmp_path: Path, run_ingest: Any) -> None:
    options = IngestOptions()
    sources = [str(hostile_corpus / "files"), str(hostile_corpus / "archives")]
    receipts = run_pipelines(sources, OutputFolder(tmp_path / "beam"), options)
    direct = run_ingest(sources, OutputFolder(tmp_path / "direct"), options).receipts
    assert sorted(receipts, key=lambda receipt: receipt.key) == sorted(direct, key=lambda receipt: receipt.key)


def test_candidates_travel_as_bytes() -> None:
    register_coders()
    pipeline = beam.Pipeline(runner=FnApiRunner())
    settings = FirstPassSettings(out=OutputFolder(Path("none")), options=IngestOptions(), partitions=3)
    candidates = pipeline | beam.Create([]) | RunFlow(fingerprint_inputs(settings))
    assert candidates.element_type == beam.typehints.Tuple[int, bytes]
    chosen = candidates | "Choose" >> RunFlow(choose_duplicates(settings.out))
    assert chosen.element_type == beam.typehints.Tuple[int, int]


MEASURED = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import conftest as driver
from schemas.options import IngestOptions
from transforms.storage.folder import OutputFolder

def peak():  # ru_maxrss would start with the memory of pytest
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) << 10

before = peak()
options = IngestOptions(max_dense_bytes=1 << 30)
result = driver.ingest([Path(sys.argv[2])], OutputFolder(Path(sys.argv[3])), options)
print(json.dumps([result.ledger.to_json(), peak() - before]))
"""


def test_a_long_line_and_a_bomb_stay_within_memory(repository: Path, tmp_path: Path) -> None:
    """The line is kept; nothing holds the bomb, which has twice the bytes of the bound. A whole run takes a larger."""
    big, out = tmp_path / "big", tmp_path / "out"
    big.mkdir()
    line = b"x = y + 1; " * 1_000_000
    (big / "long_line.cpp").write_bytes(line)
    with (
        zipfile.ZipFile(big / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("bomb.cpp", "w", force_zip64=True) as bomb,
    ):
        for _ in range(BOMB_BYTES >> 20):
            bomb.write(b" " * (1 << 20))
    command = [sys.executable, "-c", MEASURED, str(Path(__file__).parents[1]), str(big), str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=repository)
    ledger, added_bytes = json.loads(done.stdout)
    assert ledger["documents"]["kept"] == 1
    assert tables(OutputFolder(out), "part")["doc_id"].to_pylist() == [hashlib.sha256(line).hexdigest()]
    assert ledger["bytes"]["filtered"]["size"] == BOMB_BYTES
    assert added_bytes < BOMB_BYTES // 2


def run_pipelines(sources: list[str], out: OutputFolder, options: IngestOptions) -> list[UnitReceipt]:
    """Run both passes as pipelines and return the receipts as they stand in the output folder."""
    register_coders()
    inputs = plan_inputs(list_inputs(sources, options), options)
    found = find_first_pass(inputs, out, options)
    clear_duplicates(out)
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        read = fingerprint_inputs(FirstPassSettings(out=out, options=options, partitions=70))
        _ = pipeline | "Inputs" >> beam.Create(inputs) | RunFlow((*read, *choose_duplicates(out)))
    found = add_digests(found, out)
    merge_duplicates(duplicates_name(inputs, found.digests), out)
    found = look_up_choices(found, out, options)
    assert found.duplicates
    units = plan_ingest(found, out, options, config={}, core_version="1")
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | "Units" >> beam.Create(units) | RunFlow(write_units(WriteSettings(out, options)))
    receipts = [out.find_receipt(unit) for unit in units]
    assert all(receipt and receipt.stage == Stage.INGEST for receipt in receipts)
    return [receipt for receipt in receipts if receipt]


def check_expectations(hostile_corpus: Path, out: OutputFolder, ledger: Ledger) -> None:
    """Hold what came out against expect.json, the rejects and the ledger."""
    expect = json.loads((hostile_corpus / "expect.json").read_bytes())
    table = tables(out, "part")
    found = table["doc_id"].to_pylist()
    assert not set(expect["kept"]) - set(found)
    assert not set(expect["dropped"]) & set(found)
    assert len(set(found)) == len(found) == ledger.documents.kept
    rejects = [
        (path, reason)
        for path, reason in zip(*(tables(out, "rejects")[name].to_pylist() for name in ("path", "reason")), strict=True)
    ]
    for archive, reason in BROKEN.items():
        assert any(path.startswith(archive) and reason == given for path, given in rejects), archive
    assert len(rejects) == ledger.documents.total - ledger.documents.kept
    files = [path for path in (hostile_corpus / "files").rglob("*") if path.is_file() and not path.is_symlink()]
    shown = set(table["path"].to_pylist()) | {path for path, _ in rejects}
    assert sum("/" not in path and not path.startswith(tuple(BROKEN)) for path in shown) == len(files)


def tables(out: OutputFolder, kind: str) -> pa.Table:
    paths = sorted(Path(out.root).glob(f"documents/{kind}-*.parquet"))
    return pa.concat_tables([pq.read_table(path) for path in paths])
