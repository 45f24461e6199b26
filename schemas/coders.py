"""The Beam coders of what travels between workers: `pyarrow.RecordBatch`, units and unit receipts.

Beam has no coder for a RecordBatch, and pickling a slice would include its whole parent. The IPC writer truncates
slices. One coder on every runner also keeps the bytes the same.
"""

from __future__ import annotations

import zlib

import apache_beam as beam
import pyarrow as pa
from apache_beam import coders

from schemas.units import Unit, UnitReceipt

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class _DeterministicCoder(coders.Coder):
    def is_deterministic(self) -> bool:
        """Say that equal values give equal bytes."""
        return True


class RecordBatchCoder(_DeterministicCoder):
    """Encodes one RecordBatch as an Arrow IPC stream of one batch, lz4-compressed."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        """Return `value` as an IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema, options=_OPTIONS) as writer:
            writer.write_batch(value)
        return sink.getvalue().to_pybytes()

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        """Return the batch of an IPC stream."""
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()

    def to_type_hint(self) -> type[pa.RecordBatch]:
        """Return the type that this coder is for."""
        return pa.RecordBatch


class UnitCoder(_DeterministicCoder):
    """Encodes a `Unit` as JSON, deflated: one of loose files names thousands of paths, much alike."""

    def encode(self, value: Unit) -> bytes:
        """Return the unit as deflated JSON."""
        return zlib.compress(value.to_bytes(), 1)

    def decode(self, encoded: bytes) -> Unit:
        """Return the unit."""
        return Unit.from_bytes(zlib.decompress(encoded))

    def to_type_hint(self) -> type[Unit]:
        """Return the type that this coder is for."""
        return Unit


class UnitReceiptCoder(_DeterministicCoder):
    """Encodes a `UnitReceipt` as canonical JSON."""

    def encode(self, value: UnitReceipt) -> bytes:
        """Return the receipt as canonical JSON."""
        return value.to_bytes()

    def decode(self, encoded: bytes) -> UnitReceipt:
        """Return the receipt."""
        return UnitReceipt.from_bytes(encoded, where="a unit receipt between two steps")

    def to_type_hint(self) -> type[UnitReceipt]:
        """Return the type that this coder is for."""
        return UnitReceipt


def register_coders() -> None:
    """Make Beam use these coders wherever a PCollection is annotated with their types."""
    for kind, coder in ((pa.RecordBatch, RecordBatchCoder), (Unit, UnitCoder), (UnitReceipt, UnitReceiptCoder)):
        beam.coders.registry.register_coder(kind, coder)
