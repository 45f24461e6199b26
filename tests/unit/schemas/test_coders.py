"""What travels between workers goes through our coders, and slices do not take their parents along."""

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam import coders

from schemas.coders import RecordBatchCoder, UnitCoder, UnitReceiptCoder, register_coders
from schemas.units import Stage, Unit, UnitReceipt

BATCH = pa.record_batch(
    {"word": pa.array([b"int", b"", b"\xff"], pa.binary()), "count": pa.array([1, 2, 2**63], pa.uint64())}
)


@pytest.fixture(autouse=True)
def _registered():
    register_coders()


@pytest.mark.parametrize(
    ("kind", "coder"), [(pa.RecordBatch, RecordBatchCoder), (Unit, UnitCoder), (UnitReceipt, UnitReceiptCoder)]
)
def test_the_registry_gives_our_coder(kind, coder):
    assert isinstance(coders.registry.get_coder(kind), coder)


def test_pairs_of_text_and_batches_use_it_too():
    coder = coders.registry.get_coder(beam.typehints.Tuple[str, pa.RecordBatch])
    assert isinstance(coder.key_coder(), coders.StrUtf8Coder)
    assert isinstance(coder.value_coder(), RecordBatchCoder)


def test_a_batch_survives():
    coder = RecordBatchCoder()
    assert coder.decode(coder.encode(BATCH)).equals(BATCH)


def test_a_slice_does_not_take_its_parent_along():
    parent = pa.record_batch({"x": pa.array(range(1_000_000), pa.uint64())})
    assert len(RecordBatchCoder().encode(parent.slice(10, 5))) < 2_000


def test_equal_batches_give_equal_bytes():
    coder = RecordBatchCoder()
    again = pa.record_batch({name: BATCH.column(name).take(pa.array([0, 1, 2])) for name in BATCH.schema.names})
    assert coder.encode(BATCH) == coder.encode(again)
    assert coder.is_deterministic()


def test_units_and_receipts_survive():
    unit = Unit(stage=Stage.SCAN, key="k", num_bytes=1, label="l", payload={"shard": "s"})
    receipt = UnitReceipt(stage=Stage.SCAN, key="k", outputs=(), totals={"documents": 1})
    assert UnitCoder().decode(UnitCoder().encode(unit)) == unit
    assert UnitReceiptCoder().decode(UnitReceiptCoder().encode(receipt)) == receipt
