"""The receipt of a run: which inputs made which files, assembled from unit receipts and proofs.

Totals are sums over unit receipts, checked against what validation counted from the files. Engine metrics are never
used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from schemas.digests import add_digests, same_json, sha256_json, with_digest
from schemas.errors import ConfigError, IntegrityError
from schemas.ledger import Ledger, Tally
from schemas.options import RunOptions
from schemas.places import is_plain_path, is_remote
from schemas.printing import count
from schemas.units import RECEIPT_FOLDERS, Stage, UnitReceipt
from transforms.filters.kept_counts import ALTERED, LICENSES, REDACTED, Counts, sum_counts
from transforms.records.record import check_form, read_record, reads_record
from transforms.storage.folder import OutputFolder
from transforms.tokens.losses import LOST, sum_losses

RECEIPT = "receipt.json"
SIGNATURE = f"{RECEIPT}.sig"
"""The signature of the receipt: the only file in OUT that a receipt does not name, besides itself."""

RECEIPT_FORMAT = "cppmill-receipt-1"

_MADE_AGAIN = "run again to rewrite it"

COMPARED_TOTALS = ("documents", "bytes", "tokens", "max_token_id")
"""What both the receipt of a token shard and its proof say of it."""

_SUMS = {"documents": "rows", "tokens": "tokens", "bytes": "bytes"}
"""What the dataset has in all, with the key of a shard that adds up to it."""


_COLUMNS = {**dict.fromkeys(("in", "kept", "empty", "duplicate"), int), "filtered": {"": int}, "dead": {"": int}}
LEDGER_FORM = {"documents": _COLUMNS, "bytes": _COLUMNS}
_FORM: dict[str, Any] = {
    "corpus": {"digest": str, "documents": int, "bytes": int},
    "tokenizer": {"digest": str, "revision": str, "vocab_size": int},
    "dataset": {
        **{"digest": str, "documents": int, "tokens": int, "bytes": int},
        "max_token_id": int,
        "shards": [{"path": str, "sha256": str, "rows": int, "tokens": int, "bytes": int}],
    },
    "platform_vocab": {"digest": str},
    "policy": {"bos": object, "eos": object},
    "ledger": LEDGER_FORM,
    "configs": {"ingest": dict, "tokenize": dict},
    "code": {"": str, "cppmill": str, "cppmill-core": str},
    "files": {"": str},
}
"""What every receipt has, of whatever version: commands read it without looking whether it is there."""


_SHARDS = f"{RECEIPT_FOLDERS[Stage.TOKENIZE]}/"


@dataclass(frozen=True, kw_only=True)
class TokenizerFacts:
    """The tokenizer, as the receipt describes it; what is None is left out.

    Attributes:
        digest: SHA-256 of its manifest.
        revision: The release that it was given, or `unreleased`.
        vocab_size: Number of ids.
        vocabulary: SHA-256 of the vocabulary that it was built with, if that is the user's own.
        kept: True if it was built in OUT, but before, from other documents than the dataset's.
    """

    digest: str
    revision: str
    vocab_size: int
    vocabulary: str | None = None
    kept: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Everything that a receipt is made from.

    Attributes:
        documents: Receipts of ingest units.
        tokens: Receipts of tokenize units.
        proofs: Receipts of validate units, one per token shard.
        tokenizer: Digest, revision and size.
        options: The run's options.
        platform_vocab_digest: SHA-256 of the platform vocabulary file.
        code: Versions of the code and of the dependencies that determine the output's bytes.
        files: SHA-256 of every other file in OUT, by path.
        exclusion: The root of the tree of doc_ids, with a list of withdrawn documents; else None.
        own_platform_vocab_size: Number of ids of a vocabulary with platforms of the user's own; None without any.
    """

    documents: Sequence[UnitReceipt]
    tokens: Sequence[UnitReceipt]
    proofs: Sequence[UnitReceipt]
    tokenizer: TokenizerFacts
    options: RunOptions
    platform_vocab_digest: str
    code: dict[str, str]
    files: dict[str, str]
    own_platform_vocab_size: int | None = None
    exclusion: dict[str, Any] | None = None


def make_receipt(facts: RunFacts) -> dict[str, Any]:
    """Return the receipt as JSON values, with its own digest.

    Raises:
        IntegrityError: If ledgers, unit receipts and proofs do not agree.
    """
    ledger = Ledger.sum(Ledger.from_json(receipt.ledger, where=receipt.path) for receipt in facts.documents)
    proofs = {digest: proof for proof in facts.proofs for digest in proof.inputs.items()}
    shards = [_shard_entry(receipt, proofs) for receipt in facts.tokens]
    dataset = {
        "digest": add_digests(proof.totals["dataset_digest"] for proof in facts.proofs),
        "documents": sum(shard["rows"] for shard in shards),
        "tokens": sum(shard["tokens"] for shard in shards),
        "bytes": sum(shard["bytes"] for shard in shards),
        "max_token_id": max((shard["max_token_id"] for shard in shards), default=0),
        "shards": sorted(shards, key=lambda shard: str(shard["path"])),
    }
    _check_kept(ledger, dataset)
    receipt = {
        "format": RECEIPT_FORMAT,
        "corpus": {
            "digest": add_digests(proof.totals["corpus_digest"] for proof in facts.proofs),
            "documents": dataset["documents"],
            "bytes": dataset["bytes"],
            **corpus_counts(facts.documents, facts.options.ingest.to_json()),
        },
        "tokenizer": {name: value for name, value in vars(facts.tokenizer).items() if value is not None},
        "dataset": dataset,
        "policy": {
            "bos": facts.options.tokenize.bos,
            "eos": facts.options.tokenize.eos,
            "control_text": control_text(facts.tokens),
        },
        "ledger": {**ledger.to_json(), **sum_losses(proof.totals for proof in facts.proofs)},
        "platform_vocab": _platform_vocab(facts),
        "configs": facts.options.to_json(),
        "code": facts.code,
        "files": dict(sorted(facts.files.items())),
        **({} if facts.exclusion is None else {"exclusion": facts.exclusion}),
    }
    return with_digest(receipt)


def find_receipt(out: OutputFolder, *, advice: str = _MADE_AGAIN) -> dict[str, Any] | None:
    """Return the receipt of OUT as it is, or None if there is none; for those who look for what is wrong with it.

    Args:
        out: The folder.
        advice: What to do about another one, for the message.

    Raises:
        IntegrityError: If it is not a receipt of this version.
    """
    receipt = read_record(out, RECEIPT, kind="receipt", record_format=RECEIPT_FORMAT, advice=advice)
    if receipt is not None:
        with reads_record(out.where(RECEIPT), kind="receipt", advice=advice):
            check_form(receipt, _FORM)
            _check_paths(receipt)
    return receipt


def find_options(receipt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a run as its receipt would have them today, as earlier versions knew fewer.

    None if the installed version does not know them: they are of a later one.
    """
    try:
        return RunOptions.model_validate(receipt["configs"]).to_json()
    except ValueError:
        return None


def _check_paths(receipt: Mapping[str, Any]) -> None:
    """Check that a receipt names files as a run does.

    Raises:
        ValueError: Naming the first path that is none, or of a token shard elsewhere.
    """
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    for path in (*receipt["files"], *shards):
        if not is_plain_path(path):
            raise ValueError(f"no file has the path {path!r}")
    for path in shards:
        if not path.startswith(_SHARDS):
            raise ValueError(f"no token shard has the path {path!r}")


def find_intact_receipt(out: OutputFolder, *, advice: str = _MADE_AGAIN) -> dict[str, Any] | None:
    """Return the receipt of OUT, or None if there is none; advice is as for `find_receipt`.

    Raises:
        IntegrityError: If it is not a receipt of this version, was changed, or contradicts itself.
    """
    receipt = find_receipt(out, advice=advice)
    if receipt is not None:
        check_intact(out, receipt, advice=advice)
    return receipt


def read_receipt(out: OutputFolder, *, argument: str = "", advice: str = _MADE_AGAIN) -> dict[str, Any]:
    """Return the receipt of a finished run.

    Args:
        out: The run's folder.
        argument: The argument that names the folder, for the message.
        advice: As for `find_receipt`.

    Raises:
        ConfigError: If there is none.
        IntegrityError: If it is not a receipt of this version, was changed, or contradicts itself.
    """
    receipt = find_intact_receipt(out, advice=advice)
    if receipt is None:
        raise ConfigError(f"{argument} {out.root}: no {RECEIPT}; give the folder of a finished run".lstrip())
    return receipt


@contextmanager
def unchanged_receipt(out: OutputFolder) -> Iterator[Callable[[], None]]:
    """Run a block that must see one receipt, and yield what checks that it is still the same.

    Raises:
        ConfigError: If there is none.
        IntegrityError: If a run replaced it meanwhile, whatever the block failed with because of that.
    """
    read_receipt(out)
    before = out.hash(RECEIPT)

    def check() -> None:
        if not out.exists(RECEIPT) or out.hash(RECEIPT) != before:
            raise IntegrityError(f"{out.where(RECEIPT)}: a run replaced it meanwhile; try again once no run is active")

    try:
        yield check
    except Exception:
        check()
        raise


def check_intact(out: OutputFolder, receipt: Mapping[str, Any], *, advice: str = _MADE_AGAIN) -> None:
    """Check what a receipt shows of itself: its digest, and that it says nothing twice in two ways.

    Args:
        out: The run's folder.
        receipt: Its receipt.
        advice: As for `find_receipt`.

    Raises:
        IntegrityError: If it was changed, or contradicts itself.
    """
    found = sha256_json({name: value for name, value in receipt.items() if name != "digest"})
    if found != receipt.get("digest"):
        raise IntegrityError(
            f"{out.where(RECEIPT)}: its digest is {receipt.get('digest')}, its content gives {found}; it was changed; "
            f"{advice}"
        )
    with reads_record(out.where(RECEIPT), kind="receipt", advice=advice):
        problems = list(find_contradictions(receipt))
    if problems:
        raise IntegrityError(f"{out.where(RECEIPT)}: {problems[0]}; {advice}")


def find_contradictions(receipt: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a receipt says twice in two ways: sums of its shards, the ledger, and the policy."""
    dataset, policy, options = receipt["dataset"], receipt["policy"], receipt["configs"]["tokenize"]
    shards, ledger = dataset["shards"], receipt["ledger"]
    paths = [shard["path"] for shard in shards]
    twice = sorted(path for path, number in Counter(paths).items() if number > 1)
    yield from (f"it lists the shard {path} {paths.count(path)} times" for path in twice)
    said = [
        *((name, dataset[name], sum(shard[key] for shard in shards)) for name, key in _SUMS.items()),
        *((f"corpus {name}", receipt["corpus"][name], dataset[name]) for name in ("documents", "bytes")),
        *((f"kept {name}", ledger[name]["kept"], dataset[name]) for name in ("documents", "bytes")),
        *((f"{name} in", ledger[name]["in"], Tally.of_columns(ledger[name]).total) for name in ("documents", "bytes")),
        *((f"policy {name}", policy[name], options[name]) for name in ("bos", "eos")),
    ]
    for name, value, found in said:
        if not same_json(value, found):
            yield f"it says {name} {value}, and elsewhere {found}"


def check_named(
    out: OutputFolder, receipt: Mapping[str, Any], names: Iterable[str], *, advice: str = "see `cppmill verify`"
) -> None:
    """Check that files of a run are those that its receipt names, before what is in them is told of the run.

    Files of a folder are read, as bits may rot while size and time stay; of objects, a store's version is enough.

    Args:
        out: The run's folder.
        receipt: Its receipt.
        names: The files.
        advice: What to do about another one.

    Raises:
        IntegrityError: If one is missing, or another one.
    """
    if is_remote(out.root):
        out.load_digests()
    if altered := next(find_altered(out, receipt, names), None):
        raise IntegrityError(f"{out.where(altered)}: missing, or not the file that the receipt names; {advice}")


def find_altered(out: OutputFolder, receipt: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield those of some files of a run that are missing, or not those that its receipt names."""
    named = named_files(receipt)
    yield from (name for name in names if out.digest(name) != named.get(name))


def named_files(receipt: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of every file that a receipt names, by path."""
    return {**receipt["files"], **{shard["path"]: shard["sha256"] for shard in receipt["dataset"]["shards"]}}


def describe_receipt(receipt: dict[str, Any]) -> list[str]:
    """Return the lines that show a receipt to people."""
    documents, sizes, dataset = receipt["ledger"]["documents"], receipt["ledger"]["bytes"], receipt["dataset"]
    lines = [f"in        {count(documents['in'], 'document')}, {count(sizes['in'], 'byte')}"]
    lines += [
        f"{column:<9} {count(documents[column], 'document')}, {count(sizes[column], 'byte')}"
        for column in ("kept", "empty", "duplicate")
    ]
    for column in ("filtered", "dead"):
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in documents[column].items())
        total = count(sum(documents[column].values()), "document")
        lines.append(f"{column:<9} {total}{f' ({reasons})' if reasons else ''}")
    if ALTERED in receipt["corpus"]:
        lines.append(
            f"altered   {receipt['corpus'][ALTERED]:,} of the kept documents have other bytes than their source"
        )
    for name, numbers in receipt["corpus"].get(REDACTED, {}).items():
        altered = count(numbers["documents"], "document")
        lines.append(f"redacted  {numbers['places']:,} {name.partition('_')[2]} in {altered}")
    if LICENSES in receipt["corpus"]:
        found = ", ".join(f"{name} {number:,}" for name, number in receipt["corpus"][LICENSES].items())
        lines.append(f"licences  of the kept documents, by where they are from: {found}")
    if LOST in receipt["ledger"]:
        lines.append(f"lost      {_describe_losses(receipt['ledger'][LOST])}")
    ratio = dataset["bytes"] / dataset["tokens"] if dataset["tokens"] else 0.0
    lines += [
        f"tokens    {dataset['tokens']:,} in {count(len(dataset['shards']), 'shard')}, {ratio:.2f} bytes per token",
        f"largest   id {dataset['max_token_id']:,} of a vocabulary of {receipt['tokenizer']['vocab_size']:,}",
        f"tokenizer {receipt['tokenizer']['digest']} ({receipt['tokenizer']['revision']})",
        f"dataset   {dataset['digest']}",
        f"receipt   {receipt['digest']}",
    ]
    return lines


def _describe_losses(lost: dict[str, dict[str, int]]) -> str:
    """Return what a lossy tokenizer did to kept documents."""
    documents, sizes = lost["documents"], lost["bytes"]
    reasons = ", ".join(f"{reason} {number:,}" for reason, number in documents.items())
    return f"{sum(documents.values()):,} of the kept documents lose text, {sum(sizes.values()):,} bytes" + (
        f" ({reasons})" if reasons else ""
    )


def _platform_vocab(facts: RunFacts) -> dict[str, Any]:
    size = facts.own_platform_vocab_size
    return {"digest": facts.platform_vocab_digest, **({} if size is None else {"size": size})}


def _shard_entry(receipt: UnitReceipt, proofs: dict[tuple[str, str], UnitReceipt]) -> dict[str, Any]:
    shard = receipt.outputs[0]
    proof = proofs.get((shard.path, shard.sha256))
    if proof is None:
        raise IntegrityError(f"{shard.path}: no proof for SHA-256 {shard.sha256}; run `cppmill validate`")
    for name in COMPARED_TOTALS:
        if receipt.totals[name] != proof.totals[name]:
            raise IntegrityError(
                f"{shard.path}: its receipt has {name} = {receipt.totals[name]}, its rows give {proof.totals[name]}"
            )
    totals = {name: receipt.totals[name] for name in ("tokens", "bytes", "max_token_id")}
    return {"path": shard.path, "sha256": shard.sha256, "rows": shard.rows, **totals, "unit": receipt.key}


def _check_kept(ledger: Ledger, dataset: dict[str, Any]) -> None:
    for name, kept, written in (
        ("documents", ledger.documents.kept, dataset["documents"]),
        ("bytes", ledger.num_bytes.kept, dataset["bytes"]),
    ):
        if kept != written:
            raise IntegrityError(f"the ledger has {kept} kept {name}, the token shards have {written}")


def corpus_counts(receipts: Sequence[UnitReceipt], ingest: Mapping[str, Any]) -> Counts:
    """Return what else `corpus` has of the kept documents of ingest units, by the options of ingest."""
    return sum_counts((receipt.totals for receipt in receipts), ingest)


def said_counts(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a receipt says beside documents and bytes of its corpus; only runs with some options say anything."""
    return {name: receipt["corpus"][name] for name in (ALTERED, REDACTED, LICENSES) if name in receipt["corpus"]}


def control_text(receipts: Sequence[UnitReceipt]) -> dict[str, int]:
    """Return how often the text of each control token occurs in the documents of token shards."""
    totals = Counter[str]()
    for receipt in receipts:
        totals.update(receipt.totals["control_text"])
    return dict(sorted(totals.items()))
