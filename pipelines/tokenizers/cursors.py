"""The program of `cppmill cursors`: how often a completion at a cursor meets a token border, by tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import cppmill_core
import numpy as np

from pipelines.console.tables import align
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.compare import named_places
from pipelines.tokenizers.places import local_tokenizer
from pipelines.tokenizers.texts import read_texts
from schemas.errors import ConfigError
from schemas.options import IngestOptions
from tokenizer_build.compare.cursors import CursorTally, measure_cursors

PERCENTILES = {"median": 50, "90 %": 90, "99 %": 99, "most": 100}


def cursors(
    tokenizers: Sequence[str], places: Sequence[str], *, seed: int, sample: float, threads: int
) -> dict[str, dict[str, CursorTally]]:
    """Put cursors into the documents of runs or sources, and tally what each tokenizer makes of the text before them.

    Args:
        tokenizers: Tokenizer directories, with a name for the table before one if wanted: `NAME=PATH`.
        places: Folders of runs, and sources.
        seed: Decides where the cursors are.
        sample: Take this share of the documents, chosen by path.
        threads: How many threads encode.

    Returns:
        The tally of each kind of cursor, by name of the tokenizer.

    Raises:
        ConfigError: If something is not a tokenizer that the native core runs, two have one name, or there is no
            document.
    """
    named = {name: _open(place) for name, place in named_places(tokenizers)}
    documents = read_texts(places, IngestOptions(sample=sample, detect_platforms=False), argument="--on")
    tallies = measure_cursors(list(named.values()), documents, seed=seed, threads=threads)
    return dict(zip(named, tallies, strict=True))


def _open(place: str) -> cppmill_core.Tokenizer:
    path = local_tokenizer(place, argument="TOKENIZER")
    tokenizer = load_tokenizer(path, argument="TOKENIZER")
    if not isinstance(tokenizer, cppmill_core.Tokenizer) or tokenizer.pattern not in cppmill_core.PATTERNS:
        raise ConfigError(
            f"TOKENIZER {place}: its stable prefix is not known; give a byte-level BPE of `cppmill build`"
        )
    return tokenizer


def cursor_lines(found: Mapping[str, Mapping[str, CursorTally]], *, as_json: bool) -> Iterator[str]:
    """Yield what the command prints: a table, or a JSON object per tokenizer and kind."""
    records = [record(name, kind, tally) for name, kinds in found.items() for kind, tally in kinds.items()]
    if as_json:
        yield from (json.dumps(line) for line in records)
        return
    heads = ["tokenizer", "cursor", "cursors", "on a border", "same ids", "changed ids", "dropped ids", "dropped bytes"]
    yield from align([heads, *(_cells(line) for line in records)])
    yield "changed ids: the prompt's last ids that differ from the complete text's"
    yield "dropped ids and bytes: what Tokenizer.stable_prefix removes from the end of the prompt"
    yield f"numbers in these columns: {', '.join(PERCENTILES)}"


def record(name: str, kind: str, tally: CursorTally) -> dict[str, Any]:
    """Return a tally as JSON values; shares and percentiles are null without a cursor."""
    numbers = {what: getattr(tally, what) for what in ("changed_ids", "dropped_ids", "dropped_bytes")}
    shares = {what: getattr(tally, what) for what in ("on_border", "same")}
    return {
        "tokenizer": name,
        "cursor": kind,
        "cursors": len(tally.same),
        **{what: float(np.mean(values)) if values else None for what, values in shares.items()},
        **{what: _percentiles(values) if values else None for what, values in numbers.items()},
    }


def _percentiles(values: Sequence[int]) -> dict[str, int]:
    return {name: int(np.percentile(values, at, method="higher")) for name, at in PERCENTILES.items()}


def _cells(line: Mapping[str, Any]) -> list[str]:
    shares = ["-" if line[name] is None else f"{line[name]:.2%}" for name in ("on_border", "same")]
    numbers = [line[name] for name in ("changed_ids", "dropped_ids", "dropped_bytes")]
    listed = ["-" if found is None else " ".join(str(found[name]) for name in PERCENTILES) for found in numbers]
    return [line["tokenizer"], line["cursor"], f"{line['cursors']:,}", *shares, *listed]
