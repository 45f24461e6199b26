"""The Beam coder for `pyarrow.RecordBatch`: the Arrow IPC stream format.

Beam has none, and pickling a slice takes its whole parent along. The IPC writer truncates slices, and one coder on every
runner keeps the bytes the same.
"""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa
from apache_beam import coders

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class RecordBatchCoder(coders.Coder):
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

    def is_deterministic(self) -> bool:
        """Say that equal batches give equal bytes."""
        return True

    def to_type_hint(self) -> type[pa.RecordBatch]:
        """Return the type that this coder is for."""
        return pa.RecordBatch


def register_coders() -> None:
    """Make Beam use the Arrow coder wherever a PCollection is annotated with `pa.RecordBatch`."""
    beam.coders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)
