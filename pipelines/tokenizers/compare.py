"""The program of `cppmill compare`: tokenizers and a text to JSON values, or to tables for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from configs.published import is_published
from pipelines.console.lines import format_seconds
from pipelines.console.progress import MEGABYTE
from pipelines.console.tables import align, format_frame
from pipelines.stages.given import resolve_source
from pipelines.tokenizers.places import local_tokenizer
from pipelines.tokenizers.texts import read_texts
from schemas.errors import ConfigError
from schemas.options import IngestOptions
from schemas.places import is_remote
from tokenizer_build.compare.candidates import open_candidate, set_rayon_threads
from tokenizer_build.compare.comparison import (
    IDENTIFIERS,
    INDENTATION,
    NUMBERS,
    Comparison,
    Counts,
    Entrant,
    SpanTally,
    Tally,
    token_lengths,
)
from tokenizer_build.compare.comparison import compare as compare_candidates
from tokenizer_build.compare.origins import read_bands

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kMGTP]B|)")

LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 8), (9, 12), (13, 16), (17, 32), (33, None))
"""The first and last length of each bar of the histograms, in bytes."""

LONGEST = 5
SHOWN_PROJECTS = 20


def compare(
    tokenizers: Sequence[str],
    places: Sequence[str],
    *,
    pattern: str | None = None,
    sample: float = 1.0,
    threads: int = 1,
) -> Comparison:
    """Compare tokenizers on the documents of runs or sources.

    Args:
        tokenizers: Paths or URLs of what `open_candidate` takes, with a name for the tables before it if wanted:
            `NAME=PATH`.
        places: Folders of runs, and sources.
        pattern: The pattern of files of ranks.
        sample: Take this share of the documents, chosen by path.
        threads: How many threads encode.

    Raises:
        ConfigError: If something is not a tokenizer, two have one name, or there is no document.
    """
    set_rayon_threads(threads)
    named = [(name, local_tokenizer(place, argument="TOKENIZER")) for name, place in named_places(tokenizers)]
    entrants = [_open(name, resolve_source(path), pattern) for name, path in named]
    documents = read_texts(places, IngestOptions(sample=sample, detect_platforms=False), argument="--on")
    return compare_candidates(entrants, documents, threads=threads)


def named_places(tokenizers: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and place of each tokenizer.

    Raises:
        ConfigError: If two have one name.
    """
    named = [_name_of(text) for text in tokenizers]
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"TOKENIZER {name}: two have this name; give them names: one={named[0][1]}")
    return named


def _name_of(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if equals and name and "/" not in name:
        return name, place
    path = Path(text)
    if is_published(path):
        return text, text
    if path.name in ("tokenizer", "tokenizer.json", "tokenizer.model", "manifest.json"):
        path = path.parent if is_remote(text) else path.resolve().parent
    return path.name.partition(".")[0] or str(path), text


def _open(name: str, path: Path, pattern: str | None) -> Entrant:
    candidate = open_candidate(path, pattern=pattern)
    return Entrant(name, candidate, candidate.token_bytes(), read_bands(path))


def comparison_lines(comparison: Comparison, *, corpus_bytes: int, as_json: bool, every_project: bool) -> Iterator[str]:
    """Yield what the command prints: tables, or a JSON object per line, the text's first."""
    if as_json:
        yield from (json.dumps(record) for record in records(comparison, corpus_bytes))
    else:
        yield from tables(comparison, corpus_bytes, every_project=every_project)


def parse_size(text: str, *, argument: str = "--corpus-bytes") -> int:
    """Return the bytes of a size as it was typed.

    Raises:
        ConfigError: If it is not a size.

    Example:
        >>> parse_size("1.5TB"), parse_size("4096")
        (1500000000000, 4096)
    """
    found = _SIZE.fullmatch(text)
    num_bytes = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    if num_bytes < 1:
        raise ConfigError(
            f"{argument} {text}: not a size; it takes a number of bytes, or one with kB, MB, GB, TB or PB"
        )
    return num_bytes


def records(comparison: Comparison, corpus_bytes: int) -> list[dict[str, Any]]:
    """Return JSON values: one of the text, then one per tokenizer.

    Args:
        comparison: What was found.
        corpus_bytes: The size of the corpus whose encoding time is estimated.
    """
    text = comparison.text
    head: dict[str, Any] = {
        "record": "text",
        "documents": text.documents,
        "bytes": text.num_bytes,
        "identifiers": text.identifiers,
        "projects": dict(sorted(text.projects.items())),
        "digest": text.digest,
    }
    pairs = zip(comparison.entrants, comparison.tallies, strict=True)
    return [head, *(_record(comparison, entrant, tally, corpus_bytes) for entrant, tally in pairs)]


def _record(comparison: Comparison, entrant: Entrant, tally: Tally, corpus_bytes: int) -> dict[str, Any]:
    num_bytes = comparison.text.num_bytes
    return {
        "record": "tokenizer",
        "tokenizer": entrant.name,
        "library": entrant.candidate.library,
        "vocab_size": entrant.candidate.vocab_size,
        "tokens": tally.tokens,
        "bytes_per_token": _ratio(num_bytes, tally.tokens),
        "projects": {
            project: {"tokens": tokens, "bytes_per_token": _ratio(comparison.text.projects[project], tokens)}
            for project, tokens in sorted(tally.projects.items())
        },
        "bands": _bands(entrant, tally),
        "lossy_documents": tally.lossy.total(),
        "lossy_bytes": tally.lossy_bytes.total(),
        "lossy": {
            reason: {"documents": number, "bytes": tally.lossy_bytes[reason]}
            for reason, number in sorted(tally.lossy.items())
        },
        "first_lossy_document": tally.first_lossy,
        "threads": comparison.threads,
        "megabytes_per_second": tally.bytes_a_second / MEGABYTE,
        "corpus_bytes": corpus_bytes,
        "corpus_seconds": _ratio(corpus_bytes, tally.bytes_a_second),
        "longest_tokens": _longest(entrant, tally.counts),
        "token_lengths": length_histogram(token_lengths(entrant.tokens), tally.counts),
        "identifiers": _spans(tally.spans[IDENTIFIERS], "tokens_per_identifier"),
        "numbers": _spans(tally.spans[NUMBERS], "tokens_per_number"),
        "indentation": _spans(tally.spans[INDENTATION], "tokens_per_indentation"),
        "never_used": _never_used(entrant, tally.counts),
    }


def _spans(found: SpanTally, name: str) -> dict[str, Any]:
    return {
        "measured": found.measured,
        name: _ratio(found.tokens, found.measured),
        "whole": _ratio(found.whole, found.measured),
    }


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _bands(entrant: Entrant, tally: Tally) -> dict[str, dict[str, Any]] | None:
    """Return for each band its ids, the share of the tokens that are of it, and how many of its ids never occurred."""
    if entrant.bands is None:
        return None
    band_of = np.array(entrant.bands)
    found = {}
    for band in dict.fromkeys(entrant.bands):
        counts = tally.counts[band_of == band]
        share = _ratio(int(counts.sum()), tally.tokens)
        found[band] = {"ids": len(counts), "share": share, "never_used": int((counts == 0).sum())}
    return found


def _longest(entrant: Entrant, counts: Counts) -> list[dict[str, Any]]:
    """Return the longest tokens that occurred, the more frequent first among equals."""
    used = [(len(token), int(counts[i]), i) for i, token in enumerate(entrant.tokens) if token and counts[i]]
    chosen = sorted(used, key=lambda entry: (-entry[0], -entry[1], entry[2]))[:LONGEST]
    return [
        {"id": i, "token": repr(entrant.tokens[i])[1:], "bytes": length, "count": count} for length, count, i in chosen
    ]


def length_histogram(lengths: Counts, counts: Counts) -> list[dict[str, Any]]:
    """Return how many ids, and how many tokens of the text, have each number of bytes; ids without bytes are left out.

    Args:
        lengths: Bytes by id.
        counts: Occurrences by id.
    """
    found = []
    for first, last in LENGTHS:
        chosen = (lengths >= first) & (lengths <= (last or lengths.max(initial=0)))
        found.append({"first": first, "last": last, "ids": int(chosen.sum()), "tokens": int(counts[chosen].sum())})
    return found


def _never_used(entrant: Entrant, counts: Counts) -> dict[str, Any]:
    """Return how many ids with text never occurred, and how many of these are single bytes."""
    unused = [token for token, count in zip(entrant.tokens, counts, strict=True) if token and not count]
    spelled = sum(bool(token) for token in entrant.tokens)
    return {
        "ids": len(unused),
        "share": _ratio(len(unused), spelled),
        "single_bytes": sum(len(token) == 1 for token in unused),
    }


def tables(comparison: Comparison, corpus_bytes: int, *, every_project: bool) -> list[str]:
    """Return the findings as lines of text: a table each of the whole, projects, bands, lengths and longest tokens.

    Args:
        comparison: What was found.
        corpus_bytes: The size of the corpus whose encoding time is estimated.
        every_project: Show all projects, not only the largest ones.
    """
    text, *made = records(comparison, corpus_bytes)
    names = [row["tokenizer"] for row in made]
    lines = [
        f"text {text['documents']:,} documents, {text['bytes']:,} bytes, {text['identifiers']:,} identifiers, "
        f"{len(text['projects']):,} projects; digest {text['digest']}",
        "",
        *_summary(made, corpus_bytes),
    ]
    lines += [f"{row['tokenizer']}: {_lossy(row)}" for row in made if row["lossy_documents"]]
    lines += ["", *align([["bytes/token", "bytes", *names], *_project_rows(text, made, every_project)])]
    banded = [row for row in made if row["bands"]]
    if banded:
        head = ["share of tokens", *(row["tokenizer"] for row in banded)]
        lines += ["", *align([head, *_band_rows(banded)])]
    head = ["bytes of a token", *(f"{name}, {what}" for name in names for what in ("ids", "text"))]
    lines += ["", *align([head, *_length_rows(made)])]
    for row in made:
        lines += ["", f"longest tokens of {row['tokenizer']} in the text:"]
        lines += [
            f"  {one['bytes']:>4} bytes {one['count']:>9,} times  {one['token']}" for one in row["longest_tokens"]
        ]
    return lines


def _summary(made: Sequence[dict[str, Any]], corpus_bytes: int) -> list[str]:
    wide = {"projects", "bands", "longest_tokens", "token_lengths", "lossy"}
    frame = pd.json_normalize([{key: value for key, value in row.items() if key not in wide} for row in made])
    return format_frame(
        frame,
        {
            "tokenizer": ("tokenizer", ""),
            "ids": ("vocab_size", ","),
            "bytes/token": ("bytes_per_token", ",.3f"),
            "lossy": ("lossy_documents", ","),
            "MB/s": ("megabytes_per_second", ",.1f"),
            f"{_size(corpus_bytes)} in": ("corpus_seconds", format_seconds),
            "tokens/identifier": ("identifiers.tokens_per_identifier", ",.3f"),
            "whole": ("identifiers.whole", ".1%"),
            "tokens/number": ("numbers.tokens_per_number", ",.3f"),
            "tokens/indentation": ("indentation.tokens_per_indentation", ",.3f"),
            "never used": ("never_used.share", ".1%"),
            "library": ("library", ""),
        },
    )


def _lossy(row: dict[str, Any]) -> str:
    reasons = ", ".join(f"{reason} {found['documents']:,}" for reason, found in row["lossy"].items())
    is_one = row["lossy_documents"] == 1
    return (
        f"{row['lossy_documents']:,} document{'' if is_one else 's'} ({row['lossy_bytes']:,} bytes) "
        f"{'does not decode to itself' if is_one else 'do not decode to themselves'} ({reasons}); "
        f"the first is {row['first_lossy_document']}"
    )


def _project_rows(text: dict[str, Any], made: Sequence[dict[str, Any]], every: bool) -> Iterable[list[str]]:
    projects = sorted(text["projects"], key=lambda project: (-text["projects"][project], project))
    shown = projects if every else projects[:SHOWN_PROJECTS]
    for project in shown:
        figures = (row["projects"][project]["bytes_per_token"] for row in made)
        yield [project, f"{text['projects'][project]:,}", *(_number(figure, 3) for figure in figures)]
    rest = projects[len(shown) :]
    if rest:
        size = sum(text["projects"][project] for project in rest)
        tokens = (sum(row["projects"][project]["tokens"] for project in rest) for row in made)
        yield [f"{len(rest):,} more", f"{size:,}", *(_number(_ratio(size, number), 3) for number in tokens)]
    yield ["all", f"{text['bytes']:,}", *(_number(row["bytes_per_token"], 3) for row in made)]


def _band_rows(banded: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    for band in dict.fromkeys(band for row in banded for band in row["bands"]):
        found = (row["bands"].get(band) for row in banded)
        yield [band, *("-" if one is None else f"{_percent(one['share'])} of {one['ids']:,} ids" for one in found)]


def _length_rows(made: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    for place, (first, last) in enumerate(LENGTHS):
        cells = []
        for row in made:
            bars = row["token_lengths"]
            for what in ("ids", "tokens"):
                cells.append(_percent(_ratio(bars[place][what], sum(bar[what] for bar in bars))))
        yield [f"{first}" if first == last else f"{first}-{last}" if last else f"{first} and more", *cells]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _size(num_bytes: int) -> str:
    """Return a size in the largest unit that it has one of."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if num_bytes >= size:
            return f"{num_bytes / size:g} {unit}"
    return f"{num_bytes:,} bytes"
