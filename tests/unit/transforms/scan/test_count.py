"""A shard is read whole, and scanned once."""

import pyarrow as pa
import pytest

from schemas.errors import IntegrityError
from schemas.units import Unit
from transforms.scan.count import read_documents, scan_units
from transforms.storage.folder import OutputFolder


def test_documents_read_ahead_are_the_same_and_a_missing_shard_is_reported(tmp_path, write_shards, texts):
    out = OutputFolder(tmp_path)
    paths = [tmp_path / unit.payload["shard"] for unit in write_shards(out, 3)]
    for ahead in (False, True):
        batches = list(read_documents(paths, read_ahead=ahead))
        assert sorted(pa.Table.from_batches(batches)["content"].to_pylist()) == sorted(texts)
        with pytest.raises(FileNotFoundError):
            list(read_documents([paths[0], tmp_path / "missing"], read_ahead=ahead))


def test_a_finished_unit_is_not_scanned_again(out, write_shards, scan_settings):
    settings = scan_settings(out)
    units = write_shards(out, 2)
    first = scan_units(units, settings)
    out.remove(units[0].payload["shard"])
    assert scan_units(units, settings) == first
    with pytest.raises((IntegrityError, FileNotFoundError)):  # bytes of objects are not compared
        scan_units([Unit(**{**vars(units[0]), "key": "new"})], settings)
