"""What a run prints of its receipt."""

from __future__ import annotations

from transforms.records.receipts import describe_receipt


def test_a_receipt_is_shown_in_words() -> None:
    receipt = {
        "ledger": {
            "documents": {"in": 3, "kept": 1, "empty": 1, "duplicate": 0, "filtered": {"extension": 1}, "dead": {}},
            "bytes": {"in": 1201, "kept": 1200, "empty": 0, "duplicate": 0},
        },
        "corpus": {},
        "dataset": {"tokens": 400, "bytes": 1200, "shards": [{}], "max_token_id": 9, "digest": "d"},
        "tokenizer": {"vocab_size": 16_384, "digest": "t", "revision": "unreleased"},
        "digest": "r",
    }
    assert describe_receipt(receipt) == [
        "in        3 documents, 1,201 bytes",
        "kept      1 document, 1,200 bytes",
        "empty     1 document, 0 bytes",
        "duplicate 0 documents, 0 bytes",
        "filtered  1 document (extension 1)",
        "dead      0 documents",
        "tokens    400 in 1 shard, 3.00 bytes per token",
        "largest   id 9 of a vocabulary of 16,384",
        "tokenizer t (unreleased)",
        "dataset   d",
        "receipt   r",
    ]
