"""Documents that a lossy tokenizer does not give back: each is encoded again, and counted by what became of it.

Of such a document no digest of decoded bytes can prove that the ids are its own. So the text is read from the documents
shard, and the tokenizer must give the same ids for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import IntegrityError
from schemas.reasons import how_lost
from transforms.tokens.shards import take_rows
from transforms.tokens.tokenizer import TokenizeSettings, document_ends

LOST = "lost"
"""The key in the totals of a proof, and in the ledger of a receipt, if the tokenizer is lossy."""


@dataclass(kw_only=True)
class Losses:
    """Counts the documents of a shard that do not come back.

    Attributes:
        sources: The documents shard.
        tokenizer: The lossy tokenizer.
        settings: BOS and EOS policy.
        documents: Documents by `schemas.reasons.Lost`.
        num_bytes: Their bytes.
    """

    sources: pq.ParquetFile
    tokenizer: cppmill_core.AnyTokenizer
    settings: TokenizeSettings
    documents: Counter[str] = field(default_factory=Counter)
    num_bytes: Counter[str] = field(default_factory=Counter)

    def prove(self, rows: pa.RecordBatch, lost: npt.NDArray[np.int64], *, start: int, where: str) -> None:
        """Encode some documents again and count them.

        Args:
            rows: A batch of a token shard.
            lost: The rows of the batch that decode to other bytes than their document's.
            start: The number of the batch's first row in the shard.
            where: Names the batch in errors.

        Raises:
            IntegrityError: If the tokenizer gives a document other ids, or the document is not that of its `doc_id`.
        """
        if not len(lost):
            return
        content: Any = take_rows(self.sources, lost + start, ["content"]).column("content").combine_chunks()
        bos, eos = document_ends(self.tokenizer, self.settings.options)
        ids = self.tokenizer.encode_batch(content, self.settings.threads, bos=bos, eos=eos)
        written, paths = (rows.column(name).take(pa.array(lost, pa.int64())) for name in ("token_ids", "path"))
        back: list[Any] = self.tokenizer.decode_batch(ids, self.settings.threads, bos=bos, eos=eos).to_pylist()
        for number, (path, document, decoded) in enumerate(
            zip(paths.to_pylist(), content.to_pylist(), back, strict=True)
        ):
            if not ids[number].values.equals(written[number].values) or document == decoded:
                raise IntegrityError(f"{where}: {path} does not have the ids that the tokenizer gives its document")
            reason = how_lost(document, decoded)
            self.documents[reason] += 1
            self.num_bytes[reason] += len(document)

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return the counts as JSON values, reasons sorted."""
        return {"documents": dict(sorted(self.documents.items())), "bytes": dict(sorted(self.num_bytes.items()))}


def sum_losses(totals: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of what the totals of shards have under `LOST`; nothing if their tokenizer is lossless."""
    found = [total[LOST] for total in totals if LOST in total]
    if not found:
        return {}
    sums: dict[str, Counter[str]] = {"documents": Counter(), "bytes": Counter()}
    for one in found:
        for unit, total in sums.items():
            total.update(one[unit])
    return {LOST: {unit: dict(sorted(total.items())) for unit, total in sums.items()}}
