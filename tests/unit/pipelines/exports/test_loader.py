"""The loader on the token shards of a real run."""

from __future__ import annotations

import hashlib
from typing import Any

from cppmill_core import Tokenizer
from cppmill_core.loader import Dataset, Loader, Place


def test_every_document_of_a_run_is_read_once_by_two_ranks_with_two_workers(run: Any) -> None:
    dataset = Dataset.open(run.out / "tokens")
    tokenizer = Tokenizer.from_dir(run.out / "tokenizer", dataset.tokenizer)
    found = []
    for share in range(4):
        place = Place(rank=share % 2, ranks=2, worker=share // 2, workers=2)
        for row in Loader(dataset, columns=["doc_id", "token_ids"], seed=1, batch_rows=4, place=place):
            content = tokenizer.decode(row["token_ids"].tolist(), skip_control=True)
            assert hashlib.sha256(content).hexdigest() == row["doc_id"]
            found.append(row["doc_id"])
    assert len(found) == len(set(found)) == run.receipt["dataset"]["documents"] == dataset.rows
    assert dataset.vocab_size == run.receipt["tokenizer"]["vocab_size"]
