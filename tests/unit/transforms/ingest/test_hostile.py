"""The hostile corpus, through the transforms on Beam's local runner and within a bound on memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from schemas.coders import register_coders
from schemas.ledger import Ledger
from schemas.options import IngestOptions
from schemas.units import Stage, UnitReceipt
from transforms.ingest.dedup.exact import ChooseDuplicates, clear_duplicates, duplicates_name, merge_duplicates
from transforms.ingest.first_pass import FingerprintInputs
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.plan import add_digests, find_first_pass, look_up_choices, plan_ingest
from transforms.ingest.second_pass import WriteDocuments
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

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


def make_hostile(repository: Path, folder: Path, *arguments: str) -> Path:
    script = repository / "checks" / "hostile_corpus.py"
    subprocess.run([sys.executable, str(script), str(folder), *arguments], check=True)
    return folder


@pytest.fixture(scope="session")
def hostile(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hostile(repository, tmp_path_factory.mktemp("hostile") / "corpus")


def test_the_hostile_corpus_goes_through_the_pipeline(hostile: Path, tmp_path: Path) -> None:
    out, options = OutputFolder(tmp_path / "out"), IngestOptions(unit_bytes=1 << 16)
    sources = [str(hostile / "files"), str(hostile / "archives")]
    receipts = run_pipelines(sources, out, options)
    ledger = Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.key) for receipt in receipts)
    check_expectations(hostile, out, ledger)


def test_the_pipeline_and_the_functions_agree(hostile: Path, tmp_path: Path, run_ingest: Any) -> None:
    options = IngestOptions()
    sources = [str(hostile / "files"), str(hostile / "archives")]
    receipts = run_pipelines(sources, OutputFolder(tmp_path / "beam"), options)
    direct = run_ingest(sources, OutputFolder(tmp_path / "direct"), options).receipts
    assert sorted(receipts, key=lambda receipt: receipt.key) == sorted(direct, key=lambda receipt: receipt.key)


def test_candidates_travel_as_bytes() -> None:
    register_coders()
    pipeline = beam.Pipeline(runner=FnApiRunner())
    out = OutputFolder(Path("none"))
    candidates = pipeline | beam.Create([]) | FingerprintInputs(out=out, options=IngestOptions(), partitions=3)
    assert candidates.element_type == beam.typehints.Tuple[int, bytes]
    assert (candidates | ChooseDuplicates(out=out)).element_type == beam.typehints.Tuple[int, int]


@pytest.mark.timeout(120)
def test_a_long_line_and_a_bomb_stay_within_memory(repository: Path, tmp_path: Path) -> None:
    hostile = make_hostile(repository, tmp_path / "corpus", "--big")
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[3]); import conftest as driver\n"
        "from pathlib import Path; from transforms.storage.folder import OutputFolder\n"
        "sources = [Path(sys.argv[1]) / 'files', Path(sys.argv[1]) / 'archives']\n"
        "result = driver.ingest(sources, OutputFolder(Path(sys.argv[2])))\n"
        "status = Path('/proc/self/status').read_text().splitlines()\n"  # ru_maxrss starts with pytest's memory
        "peak = next(line.split()[1] for line in status if line.startswith('VmHWM:'))\n"
        "print(json.dumps(result.ledger.to_json())); print(peak)"
    )
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", code, str(hostile), str(tmp_path / "out"), here]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=repository)
    ledger, peak = done.stdout.splitlines()
    check_expectations(hostile, OutputFolder(tmp_path / "out"), Ledger.from_json(json.loads(ledger), where="ledger"))
    assert json.loads(ledger)["bytes"]["filtered"]["size"] == 1_000_000_000
    assert int(peak) < 1 << 20


def run_pipelines(sources: list[str], out: OutputFolder, options: IngestOptions) -> list[UnitReceipt]:
    """Run both passes as pipelines and return the receipts as they stand in the output folder."""
    register_coders()
    inputs = plan_inputs(list_inputs(sources, options), options)
    found = find_first_pass(inputs, out, options)
    clear_duplicates(out)
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        candidates = (
            pipeline | "Inputs" >> beam.Create(inputs) | FingerprintInputs(out=out, options=options, partitions=70)
        )
        _ = candidates | ChooseDuplicates(out=out)
    found = add_digests(found, out)
    merge_duplicates(duplicates_name(inputs, found.digests), out)
    found = look_up_choices(found, out, options)
    assert found.duplicates
    units = plan_ingest(found, out, options, config={}, core_version="1")
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | "Units" >> beam.Create(units) | WriteDocuments(out=out, options=options)
    receipts = [out.find_receipt(unit) for unit in units]
    assert all(receipt and receipt.stage == Stage.INGEST for receipt in receipts)
    return [receipt for receipt in receipts if receipt]


def check_expectations(hostile: Path, out: OutputFolder, ledger: Ledger) -> None:
    """Hold what came out against expect.json, the rejects and the ledger."""
    expect = json.loads((hostile / "expect.json").read_bytes())
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
    files = [path for path in (hostile / "files").rglob("*") if path.is_file() and not path.is_symlink()]
    shown = set(table["path"].to_pylist()) | {path for path, _ in rejects}
    assert sum("/" not in path and not path.startswith(tuple(BROKEN)) for path in shown) == len(files)


def tables(out: OutputFolder, kind: str) -> pa.Table:
    paths = sorted(Path(out.root).glob(f"documents/{kind}-*.parquet"))
    return pa.concat_tables([pq.read_table(path) for path in paths])
