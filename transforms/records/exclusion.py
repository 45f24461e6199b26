"""Proofs that a document is not in a dataset, or is: a Merkle tree over the sorted doc_ids, whose root is published.

The tree is that of RFC 6962 (certificate transparency): a leaf is SHA-256(0x00, doc_id), a node SHA-256(0x01, left,
right), and a node without a neighbour is its own parent. The root is SHA-256(0x02, the number of leaves as 8 bytes, the
top node), so that a place in the tree has one meaning. Two leaves beside each other with the doc_id between them prove
that it is absent. `checks/check_exclusion.py` checks a proof from the root and the proof alone.

The root proves this if its leaves are sorted and are those of the shards. `verify` derives it again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.digests import HEX_DIGEST, same_json
from schemas.errors import ConfigError, IntegrityError
from schemas.tables import SOURCE_DOC_ID
from transforms.filters.withdrawals import WITHDRAWN, read_columns, withdrawn_in
from transforms.records.in_toto import products
from transforms.records.receipts import RECEIPT, check_named
from transforms.storage.folder import OutputFolder, naming_damage

EXCLUSION = "exclusion"
"""The key of a receipt that has the root; only runs with a list of withdrawn documents have it."""

PROOF_FORMAT = "cppmill-exclusion-1"

_LEAF, _NODE, _ROOT = b"\0", b"\1", b"\2"


class MerkleTree:
    """The tree of sorted, distinct doc_ids; it holds some 150 bytes for each.

    Example:
        >>> tree = MerkleTree([64 * "0", 64 * "a"])
        >>> len(tree.path(0)), len(tree.root)
        (1, 64)
    """

    def __init__(self, doc_ids: Sequence[str]) -> None:
        """Hash all of it."""
        self.size = len(doc_ids)
        self._levels = [[sha256(_LEAF + bytes.fromhex(doc_id)).digest() for doc_id in doc_ids]]
        while len(self._levels[-1]) > 1:
            below = iter(self._levels[-1])
            pairs = zip_longest(below, below)
            self._levels.append([left if right is None else _parent(left, right) for left, right in pairs])

    @property
    def root(self) -> str:
        """The root, lower-case hex."""
        top = self._levels[-1][0] if self.size else sha256(b"").digest()
        return sha256(_ROOT + self.size.to_bytes(8, "big") + top).hexdigest()

    def path(self, index: int) -> list[str]:
        """Return the neighbours on the way from a leaf to the top, lower-case hex; levels without one are left out."""
        found = []
        for level in self._levels[:-1]:
            if index ^ 1 < len(level):
                found.append(level[index ^ 1].hex())
            index //= 2
        return found


def _parent(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def sorted_doc_ids(out: OutputFolder, shards: Sequence[str]) -> list[str]:
    """Return the distinct doc_ids of token shards, sorted."""

    def read(name: str) -> pa.ChunkedArray[Any]:
        with out.open_ranges(name) as file, naming_damage(out.where(name)):
            return pq.read_table(file, columns=["doc_id"], use_threads=False).column("doc_id")

    chunks = [chunk for column in out.each(read, shards) for chunk in column.chunks]
    distinct = pc.unique(pa.chunked_array(chunks, pa.string()))
    found: list[Any] = distinct.take(pc.sort_indices(distinct)).to_pylist()  # never null
    return found


def describe_exclusion(out: OutputFolder, shards: Sequence[str]) -> dict[str, Any]:
    """Return what a receipt says of the doc_ids of token shards: the root of their tree, and their number."""
    tree = MerkleTree(sorted_doc_ids(out, shards))
    return {"root": tree.root, "doc_ids": tree.size}


def prove(out: OutputFolder, receipt: Mapping[str, Any], doc_id: str) -> dict[str, Any]:
    """Return the proof, as JSON values, that a document is not in a dataset, or that it is.

    Args:
        out: The run's folder.
        receipt: Its receipt.
        doc_id: SHA-256 of the document's bytes, in hex.

    Returns:
        The proof; `neighbours` has the leaf itself if the document is in the dataset, else the leaves beside it.

    Raises:
        ConfigError: If the doc_id is none.
        IntegrityError: If the shards are not those that the receipt names, or do not give its root.
    """
    doc_id = doc_id.lower()
    if not HEX_DIGEST.fullmatch(doc_id):
        raise ConfigError(
            f"DOC_ID {doc_id}: not a doc_id; it is the SHA-256 of the bytes, as `sha256sum FILE` prints it"
        )
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    check_named(out, receipt, shards)
    doc_ids = sorted_doc_ids(out, shards)
    tree = MerkleTree(doc_ids)
    said = receipt.get(EXCLUSION, {}).get("root", tree.root)
    if said != tree.root:
        raise IntegrityError(
            f"{out.where(RECEIPT)}: its root is {said}, the shards give {tree.root}; run `cppmill verify`"
        )
    place = bisect_left(doc_ids, doc_id)
    is_in = place < tree.size and doc_ids[place] == doc_id
    places = [place] if is_in else [index for index in (place - 1, place) if 0 <= index < tree.size]
    return {
        "format": PROOF_FORMAT,
        "doc_id": doc_id,
        "is_in": is_in,
        "root": tree.root,
        "doc_ids": tree.size,
        "neighbours": [{"index": index, "doc_id": doc_ids[index], "path": tree.path(index)} for index in places],
    }


def find_made(out: OutputFolder, receipt: dict[str, Any], source: str) -> list[str]:
    """Return the doc_ids of the documents that were made from a source: redacted, or converted.

    Args:
        out: The run's folder.
        receipt: Its receipt.
        source: SHA-256 of the source's bytes, in hex.

    Raises:
        IntegrityError: If the documents are not those that the receipt names.
    """
    shards = products(receipt, "documents")
    check_named(out, receipt, shards)
    found = set[str]()
    for name in shards:
        with out.open_ranges(name) as file, pq.ParquetFile(file) as shard:
            if SOURCE_DOC_ID in shard.schema_arrow.names:
                table = shard.read(["doc_id", SOURCE_DOC_ID])
                made: list[Any] = table.filter(pc.field(SOURCE_DOC_ID) == source.lower()).column("doc_id").to_pylist()
                found.update(made)
    return sorted(found)


def check_withdrawn(out: OutputFolder, receipt: Mapping[str, Any], documents: Sequence[str]) -> Iterator[str]:
    """Yield every withdrawn document that a run has, and what is wrong with its list and its root.

    Args:
        out: The run's folder.
        receipt: Its receipt, whose files are intact.
        documents: Its documents shards.
    """
    said, withdrawals = receipt["configs"]["ingest"].get("withdrawn"), withdrawn_in(out)
    found = None if withdrawals is None else withdrawals.option
    if said != found:
        yield f"{out.where(WITHDRAWN)}: its digest is {found}, the options of the receipt say {said}"
    if withdrawals is None and EXCLUSION in receipt:
        yield f"{out.where(RECEIPT)}: it has {EXCLUSION}, which only a run with a list of withdrawn documents has"
    if withdrawals is None or said != found:
        return
    for name in documents:
        for row, detail in withdrawals.find(read_columns(out, name)):
            yield f"{out.where(name)}: row {row} is withdrawn: {detail}"
    expected = describe_exclusion(out, [shard["path"] for shard in receipt["dataset"]["shards"]])
    if not same_json(receipt.get(EXCLUSION), expected):
        yield f"{out.where(RECEIPT)}: its {EXCLUSION} is {receipt.get(EXCLUSION)}, the shards give {expected}"
