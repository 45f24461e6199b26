"""A run's receipt as an in-toto statement with SLSA provenance: the same facts for supply-chain tools.

The statement follows https://in-toto.io/Statement/v1, its predicate https://slsa.dev/provenance/v1. To the receipt's
facts it adds only who vouches for them. It is not signed: that is up to whoever has the keys.
"""

from __future__ import annotations

import hashlib
from typing import Any

from schemas.digests import canonical_json
from schemas.units import Stage, is_unit_receipt
from transforms.records.platforms import PLATFORM_VOCAB
from transforms.records.receipts import RECEIPT

STATEMENT = "provenance.json"
"""The file that a statement is published as."""

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:cppmill:run:1"
BUILDER = "urn:cppmill:builder"
CORPUS_DIGEST = "cppmill_corpus_1"
"""Name of the corpus' digest, a sum of SHA-256 digests (docs/reference/formats.md), not the SHA-256 of a file."""

PRODUCTS = ("documents", "tokens", "tokenizer")
"""The folders of OUT that hold the products of a run."""


def make_statement(receipt: dict[str, Any], *, builder: str = BUILDER) -> dict[str, Any]:
    """Return the statement of a run, JSON values.

    Args:
        receipt: The run's receipt.
        builder: URI of who ran it and vouches for it.

    Returns:
        The statement. Its subjects are the shards of documents and tokens and the tokenizer's files, sorted by path;
        every other file is a by-product.
    """
    subjects = {name: sha256 for folder in PRODUCTS for name, sha256 in products(receipt, folder).items()}
    others = {name: sha256 for name, sha256 in receipt["files"].items() if name not in subjects}
    others[RECEIPT] = hashlib.sha256(canonical_json(receipt)).hexdigest()
    return {
        "_type": STATEMENT_TYPE,
        "subject": _resources(subjects),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"configs": receipt["configs"]},
                "internalParameters": {"code": receipt["code"]},
                "resolvedDependencies": _dependencies(receipt),
            },
            "runDetails": {
                "builder": {
                    "id": builder,
                    "version": {name: receipt["code"][name] for name in ("cppmill", "cppmill-core")},
                },
                "byproducts": _resources(others),
            },
        },
    }


def products(receipt: dict[str, Any], folder: str) -> dict[str, str]:
    """Return the SHA-256 of the products of a run, by path, sorted.

    Args:
        receipt: The run's receipt.
        folder: `documents` or `tokens`, for their shards, or `tokenizer`, for all its files but unit receipts.
    """
    if folder == "tokens":
        return {shard["path"]: shard["sha256"] for shard in receipt["dataset"]["shards"]}
    begin = f"{folder}/" if folder == "tokenizer" else f"{folder}/part-"
    return {
        name: sha256
        for name, sha256 in sorted(receipt["files"].items())
        if name.startswith(begin) and not is_unit_receipt(name, Stage.BUILD)
    }


def is_built_in(receipt: dict[str, Any]) -> bool:
    """Return whether a run built its own tokenizer from its own documents."""
    return not receipt["tokenizer"].get("kept") and any(is_unit_receipt(name, Stage.BUILD) for name in receipt["files"])


def _dependencies(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    corpus, tokenizer = receipt["corpus"], receipt["tokenizer"]
    about = {name: tokenizer[name] for name in ("revision", "vocab_size")}
    return [
        {
            "name": "corpus",
            "digest": {CORPUS_DIGEST: corpus["digest"]},
            "annotations": {name: corpus[name] for name in ("documents", "bytes")},
        },
        {
            **_resource("tokenizer/manifest.json", tokenizer["digest"]),
            "annotations": {**about, "built_in_this_run": is_built_in(receipt)},
        },
        _resource(PLATFORM_VOCAB, receipt["platform_vocab"]["digest"]),
    ]


def _resources(files: dict[str, str]) -> list[dict[str, Any]]:
    return [_resource(name, sha256) for name, sha256 in sorted(files.items())]


def _resource(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}
