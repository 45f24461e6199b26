"""Archives for the tests of ingest: how to make them, how to read them, how to run both passes."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.ledger import Ledger
from schemas.options import IngestOptions
from schemas.units import Unit, UnitReceipt
from transforms.filters.verdicts import make_content_filter
from transforms.ingest.dedup.candidates import duplicate_candidates
from transforms.ingest.dedup.exact import choose_duplicates, clear_duplicates, duplicates_name, merge_duplicates
from transforms.ingest.fingerprints import fingerprint_unit
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.plan import FirstPass, add_digests, find_first_pass, look_up_choices, plan_ingest
from transforms.ingest.second_pass import WriteSettings, ingest_unit
from transforms.sources.document import Document
from transforms.sources.listing import list_inputs
from transforms.sources.readers import read_documents
from transforms.storage.folder import OutputFolder
from transforms.units.execution import run_unit
from transforms.units.flow import run_flow

Members = list[tuple[str, bytes]]


@dataclass(frozen=True)
class Archives:
    """Makes archives."""

    def members(self, count: int, tag: str = "m", repeat: int = 40) -> Members:
        return [(f"{tag}/f{index}.cpp", f"int {tag}_{index} = {index};\n".encode() * repeat) for index in range(count)]

    def tar(self, entries: Members, kind: int = tarfile.GNU_FORMAT) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
            for name, content in entries:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return buffer.getvalue()

    def zip(self, entries: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, content in entries:
                archive.writestr(zipfile.ZipInfo(name), content, method)
        return buffer.getvalue()


@dataclass(frozen=True)
class Found:
    """What was read from an input."""

    documents: list[Document]

    @property
    def whole(self) -> dict[str, bytes]:
        """Contents by path below the archive."""
        found = [item for item in self.documents if item.content is not None]
        return {item.path.partition("/")[2]: item.content or b"" for item in found}

    @property
    def rest(self) -> list[tuple[str, str, int]]:
        """Path, reason and bytes of everything else."""
        return [(item.path, str(item.reason), item.num_bytes) for item in self.documents if item.content is None]


def read_file(path: Path, options: IngestOptions | None = None) -> Found:
    options = options or IngestOptions()
    (unit,) = plan_inputs(list_inputs([str(path)], options), options)
    return Found(list(read_documents(unit, options)))


@dataclass
class Ingested:
    """A finished ingest."""

    out: OutputFolder
    found: FirstPass
    units: list[Unit]
    receipts: list[UnitReceipt] = field(default_factory=list)

    @property
    def ledger(self) -> Ledger:
        return Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.key) for receipt in self.receipts)

    def table(self, kind: str = "part") -> pa.Table:
        tables = [self.read(name) for name in sorted(self.out.files("documents")) if f"/{kind}-" in name]
        return pa.concat_tables(tables) if tables else pa.table({})

    def read(self, name: str) -> pa.Table:
        with self.out.open_local(name) as path:
            return pq.read_table(path)

    @property
    def contents(self) -> dict[str, bytes]:
        table = self.table()
        return dict(zip(table["path"].to_pylist(), table["content"].to_pylist(), strict=True)) if len(table) else {}

    @property
    def rejects(self) -> list[tuple[str, str, str]]:
        table = self.table("rejects")
        names = ("path", "column", "reason")
        return list(zip(*(table[name].to_pylist() for name in names), strict=True)) if len(table) else []


def first_pass(sources: Sequence[Path | str], out: OutputFolder, options: IngestOptions) -> Ingested:
    """Make fingerprints, choose duplicates and plan, without Beam."""
    inputs = plan_inputs(list_inputs([str(source) for source in sources], options), options)
    found = find_first_pass(inputs, out, options)
    clear_duplicates(out)
    packed = []
    for unit in inputs:
        name = fingerprint_unit(unit, out, options, make_content_filter(options))
        with out.open_local(name) as path:
            packed.extend(duplicate_candidates(path, unit.payload["index"], 3))
    found = add_digests(found, out)
    if options.drop_duplicates:
        list(run_flow(choose_duplicates(out), packed))
        merge_duplicates(duplicates_name(inputs, found.digests), out)
    found = look_up_choices(found, out, options)
    return Ingested(out, found, plan_ingest(found, out, options, config={}, core_version="1"))


def ingest(sources: Sequence[Path | str], out: OutputFolder, options: IngestOptions | None = None) -> Ingested:
    """Run both passes, without Beam."""
    options = options or IngestOptions()
    result = first_pass(sources, out, options)
    work = partial(ingest_unit, settings=WriteSettings(out, options))
    result.receipts = [run_unit(unit, out, work).result for unit in result.units]
    return result


@pytest.fixture(scope="session")
def archives() -> Archives:
    return Archives()


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Found]:
    """Write a file and read it as a source: read(name, data, options)."""

    def run(name: str, data: bytes, options: IngestOptions | None = None) -> Found:
        path = tmp_path / name
        path.write_bytes(data)
        return read_file(path, options)

    return run


@pytest.fixture
def run_first_pass() -> Callable[..., Ingested]:
    return first_pass


@pytest.fixture
def run_ingest() -> Callable[..., Ingested]:
    return ingest
