"""Prove the token shards of a finished run: every row is read again, and counted sums are compared with the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import cppmill_core

from schemas.digests import add_digests, same_json
from schemas.errors import CppmillError
from schemas.options import REENCODED, TokenizeOptions
from schemas.resources import raise_own_limit
from transforms.records.checks.contents import ContentCheck, Detect, filters_of, is_repeatable
from transforms.records.platforms import platform_vocab_size
from transforms.records.receipts import RECEIPT
from transforms.storage.folder import OutputFolder
from transforms.tokens.losses import LOST, sum_losses
from transforms.tokens.tokenizer import TokenizeSettings
from transforms.tokens.validate import prove_shard

OnShard = Callable[[int, int], None]

_TOTALS = ("documents", "bytes", "tokens", "max_token_id")
_CONTROL_TEXT = "control_text"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How shards are read again.

    Attributes:
        threads: How many shards are read at the same time.
        reencode: The part of the documents to encode again, 0 to 1.
        on_shard: Called with the number of token shards that are read back and with that of all, from 0 on.
        detect: Finds the platforms of the run, to find those of the same documents again.
    """

    threads: int
    reencode: float = REENCODED
    on_shard: OnShard = lambda done, shards: None
    detect: Detect | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the records of a run say of a token shard.

    Attributes:
        line: The line of the receipt.
        documents: The documents shard that it is of.
        totals: Of the unit receipt of the token shard, its path and totals; None if it is not there.
        proof: Of its proof, the same.
    """

    line: Mapping[str, Any]
    documents: str
    totals: tuple[str, Mapping[str, Any]] | None = None
    proof: tuple[str, Mapping[str, Any]] | None = None


def prove_shards(
    out: OutputFolder, receipt: dict[str, Any], claims: Sequence[Claim], reading: Reading
) -> Iterator[str]:
    """Yield every difference between the token shards of a run, their documents, and what is said of them.

    Args:
        out: The run's folder, whose files are intact.
        receipt: Its receipt.
        claims: What is said of each token shard.
        reading: How to read them.
    """
    settings = TokenizeSettings(
        out=out,
        tokenizer_digest=receipt["tokenizer"]["digest"],
        options=TokenizeOptions.model_validate(receipt["configs"]["tokenize"]),
        platform_vocab_size=platform_vocab_size(receipt),
    )
    prove = partial(_prove, receipt=receipt, settings=settings, reading=reading)
    results: list[dict[str, Any] | list[str]] = []
    reading.on_shard(0, len(claims))
    with ThreadPoolExecutor(max_workers=reading.threads) as pool:
        for result in pool.map(prove, claims):
            results.append(result)
            reading.on_shard(len(results), len(claims))
    failures = [line for result in results if isinstance(result, list) for line in result]
    yield from failures or _check_sums(out, receipt, [result for result in results if isinstance(result, dict)])


def _prove(
    claim: Claim, *, receipt: dict[str, Any], settings: TokenizeSettings, reading: Reading
) -> dict[str, Any] | list[str]:
    """Return the totals counted from one shard, with the text of control tokens, or what is wrong with it."""
    shard, contents = claim.line["path"], _contents(receipt, settings, reading)
    try:
        totals = prove_shard(shard, claim.documents, unit_key=claim.line["unit"], settings=settings, digests={})
        wrong = list(contents.check(shard, claim.documents))
    except (CppmillError, cppmill_core.CoreError, OSError) as error:
        raise_own_limit(error)
        return [str(error)]
    counted = {**{name: totals[name] for name in _TOTALS}, _CONTROL_TEXT: dict(sorted(contents.control_text.items()))}
    said = [(RECEIPT, claim.line, {"rows": totals["documents"], **{name: totals[name] for name in _TOTALS[1:]}})]
    said += [(*claim.totals, counted)] if claim.totals else []
    said += [(*claim.proof, totals)] if claim.proof else []
    for name, facts, found in said:
        false = [key for key, value in found.items() if not same_json(facts.get(key), value)]
        if false:
            shown = ", ".join(f"{key} {facts.get(key)} (counted {found[key]})" for key in false)
            wrong.append(f"{settings.out.where(name)}: of {shard} it says {shown}")
    return wrong or {**totals, _CONTROL_TEXT: counted[_CONTROL_TEXT]}


def _contents(receipt: dict[str, Any], settings: TokenizeSettings, reading: Reading) -> ContentCheck:
    """Return the check of the documents of a shard."""
    ingest = receipt["configs"]["ingest"]
    return ContentCheck(
        settings=settings,
        ingest=ingest,
        reencode=reading.reencode,
        filters=filters_of(receipt),
        detect=reading.detect if ingest["detect_platforms"] and is_repeatable(receipt) else None,
    )


def _check_sums(out: OutputFolder, receipt: dict[str, Any], totals: list[dict[str, Any]]) -> Iterator[str]:
    dataset, corpus = receipt["dataset"], receipt["corpus"]
    control_text = Counter[str]()
    for total in totals:
        control_text.update(total[_CONTROL_TEXT])
    counted: list[tuple[str, Any, Any]] = [
        ("dataset digest", dataset["digest"], add_digests(total["dataset_digest"] for total in totals)),
        ("corpus digest", corpus["digest"], add_digests(total["corpus_digest"] for total in totals)),
        ("corpus documents", corpus["documents"], sum(total["documents"] for total in totals)),
        ("corpus bytes", corpus["bytes"], sum(total["bytes"] for total in totals)),
        ("kept documents", receipt["ledger"]["documents"]["kept"], sum(total["documents"] for total in totals)),
        ("kept bytes", receipt["ledger"]["bytes"]["kept"], sum(total["bytes"] for total in totals)),
        ("max_token_id", dataset["max_token_id"], max((total["max_token_id"] for total in totals), default=0)),
        (LOST, receipt["ledger"].get(LOST), sum_losses(totals).get(LOST)),
        (_CONTROL_TEXT, receipt["policy"][_CONTROL_TEXT], dict(sorted(control_text.items()))),
    ]
    counted += [
        (name, dataset[name], sum(total[name] for total in totals)) for name in ("documents", "bytes", "tokens")
    ]
    for name, expected, found in counted:
        if not same_json(expected, found):
            yield f"{out.where(RECEIPT)}: it says {name} {expected}, the shards give {found}"
