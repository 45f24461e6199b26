"""Signs a run again that was changed: every digest in it is made true."""

from __future__ import annotations

import json

from schemas.digests import canonical_json, sha256_file, sha256_json


def rewrite(path, change):
    """Change a JSON file."""
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(canonical_json(value))


def seal(value):
    value["digest"] = sha256_json({name: entry for name, entry in value.items() if name != "digest"})


def units(out, folder):
    return sorted(path for path in out.rglob(f"{folder}/_unit-*.json") if ".cache" not in path.parts)


def sign_units(out):
    """Make the digests in unit receipts true again, and those of the receipts themselves."""

    def mend_unit(value):
        for output in value["outputs"]:
            output.update(sha256=sha256_file(out / output["path"]), num_bytes=(out / output["path"]).stat().st_size)
        for name, digest in value["inputs"].items():
            value["inputs"][name] = sha256_file(out / name) if digest.strip("0") else digest
        seal(value)

    for folder in ("documents", "counts/parts", "tokenizer", "tokens", "proofs"):
        for path in units(out, folder):
            rewrite(path, mend_unit)


def sign_again(out):
    """Make every digest true again: of files in unit receipts, of those in the receipt, and of all receipts."""
    sign_units(out)

    def mend_receipt(value):
        value["files"] = {name: sha256_file(out / name) for name in value["files"]}
        for shard in value["dataset"]["shards"]:
            shard["sha256"] = sha256_file(out / shard["path"])
        seal(value)

    rewrite(out / "receipt.json", mend_receipt)


def mend_tokenizer(out):
    """Make the digests of a tokenizer's files true in its manifest, and that of the manifest in the receipt."""
    folder = out / "tokenizer"

    def mend(value):
        value["files"] = {name: sha256_file(folder / name) for name in value["files"]}

    rewrite(folder / "manifest.json", mend)
    digest = {"digest": sha256_file(folder / "manifest.json")}
    rewrite(out / "receipt.json", lambda value: value["tokenizer"].update(digest))
