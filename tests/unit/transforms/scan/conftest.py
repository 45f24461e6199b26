"""Documents shards to scan, and settings to scan them with."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.tables import DOCUMENTS
from schemas.units import Stage, Unit
from transforms.scan.count import ScanSettings

PARTITIONS = 3
CONFIG = {
    "pattern": "cpp-words-1",
    "unit_pattern": "cpp-lines-1",
    "word_partitions": PARTITIONS,
    "candidates": [{"term": "size", "category": "std", "match": "ident"}],
    "morphemes": [{"morpheme": "name", "position": "prefix"}],
}
TEXTS = [b"int name%d = a::size(%d);\n" % (number % 70, number) * 20 for number in range(200)]


def publish_shards(out, number):
    """Write the texts as so many documents shards, and return their units."""
    units = []
    for shard in range(number):
        rows = [
            {**dict.fromkeys(DOCUMENTS.names), "doc_id": "", "path": "", "num_bytes": len(text), "platform_ids": []}
            | {"platform_info": "{}", "project": f"p{index % 2}", "content": text}
            for index, text in enumerate(TEXTS)
            if index % number == shard
        ]
        name = f"documents/part-{shard}.parquet"
        table = pa.Table.from_pylist(rows, DOCUMENTS)
        file = out.publish(name, lambda path, table=table: pq.write_table(table, path) or table.num_rows)
        payload = {"shard": name, "inputs": {name: file.sha256}}
        units.append(Unit(stage=Stage.SCAN, key=f"{shard}", num_bytes=shard, label=name, payload=payload))
    return units


def make_settings(out, **options):
    given = {"memory_bytes": 1 << 30, **options}
    return ScanSettings(out=out, scanner_config=json.dumps(CONFIG), word_partitions=PARTITIONS, lines=True, **given)


@pytest.fixture(scope="session")
def texts():
    """The contents of the documents."""
    return TEXTS


@pytest.fixture(scope="session")
def write_shards():
    return publish_shards


@pytest.fixture(scope="session")
def scan_settings():
    return make_settings
