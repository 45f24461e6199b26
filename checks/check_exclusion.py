#!/usr/bin/env python3
"""Check that a document is not in a dataset, from the published root and a proof alone, without the project's code.

    check_exclusion.py ROOT PROOF [--doc-id DOC_ID]

ROOT is `exclusion.root` of the receipt (or a receipt.json), PROOF what `cppmill prove-absent` printed. Prints one line;
exits 0 if the document is absent, 1 if the proof shows that it is present, 2 if it proves nothing. Needs Python alone.

The tree: leaf SHA-256(0, doc_id), node SHA-256(1, left, right), a node without a neighbour is its own parent, root
SHA-256(2, number of leaves in 8 bytes, top). Leaves are sorted, so a doc_id between two leaves beside each other is absent.
"""
import argparse
import hashlib
import json
import sys
from pathlib import Path


class Unproven(Exception):
    """The proof does not hold."""


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def root_of(leaf: bytes, index: int, size: int, path: list) -> str:
    """The root of a tree of `size` leaves that has this leaf at this index, by the neighbours on its way to the top."""
    if not 0 <= index < size:
        raise Unproven(f"there is no leaf {index} of {size}")
    total, node, neighbours = size, sha256(b"\0", leaf), [bytes.fromhex(text) for text in path]
    if any(len(text) != 32 for text in neighbours):
        raise Unproven("a neighbour is no SHA-256")
    while size > 1:
        if index % 2 or index + 1 < size:
            if not neighbours:
                raise Unproven("the path is too short")
            other = neighbours.pop(0)
            node = sha256(b"\1", other, node) if index % 2 else sha256(b"\1", node, other)
        index, size = index // 2, (size + 1) // 2
    if neighbours:
        raise Unproven("the path is too long")
    return sha256(b"\2", total.to_bytes(8, "big"), node).hex()


def check(root: str, proof: dict, doc_id: str) -> bool:
    """True if the document is absent, False if it is present; Unproven if neither is shown."""
    size = int(proof["doc_ids"])
    if size == 0:
        if sha256(b"\2", bytes(8), sha256()).hex() != root:
            raise Unproven("the root is not that of an empty dataset")
        return True
    leaves = [(int(leaf["index"]), bytes.fromhex(leaf["doc_id"]), leaf["path"]) for leaf in proof["neighbours"]]
    for index, leaf, path in leaves:
        if len(leaf) != 32 or root_of(leaf, index, size, path) != root:
            raise Unproven(f"leaf {index} is not in the tree of this root")
    asked = bytes.fromhex(doc_id)
    if len(asked) != 32:
        raise Unproven(f"{doc_id} is no SHA-256")
    if any(leaf == asked for _, leaf, _ in leaves):
        return False
    below = max((index for index, leaf, _ in leaves if leaf < asked), default=-1)
    above = min((index for index, leaf, _ in leaves if leaf > asked), default=size)
    if above != below + 1:
        raise Unproven("no two leaves beside each other have the doc_id between them")
    return True


def read_root(given: str) -> str:
    """The root that is given, or that of the receipt that is."""
    if not given.endswith(".json"):
        return given
    receipt = json.loads(Path(given).read_bytes())
    if "exclusion" not in receipt:
        raise Unproven(f"{given} has no root, because its run has no list of withdrawn documents")
    return receipt["exclusion"]["root"]


def main() -> int:
    ap = argparse.ArgumentParser()
    ap.add_argument("root")
    ap.add_argument("proof", type=Path)
    ap.add_argument("--doc-id")
    args = ap.parse_args()
    try:
        root = read_root(args.root)
        proof = json.loads(args.proof.read_bytes())
        doc_id = (args.doc_id or proof["doc_id"]).lower()
        is_absent = check(root.lower(), proof, doc_id)
    except Exception as error:  # whatever a file contains or lacks: exit code 1 is for a proof of presence alone
        kind = "" if isinstance(error, Unproven) else f"{type(error).__name__}: "
        print(f"FAIL  nothing is proven: {kind}{error}")
        return 2
    print(f"ok    absent: {doc_id}" if is_absent else f"FAIL  present: {doc_id}")
    return 0 if is_absent else 1


if __name__ == "__main__":
    sys.exit(main())
