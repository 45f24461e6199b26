"""Sections of a report about the text: lengths, kinds of bytes, identifiers, namespaces, platforms.

Each function returns the values of one section, or None if the run has no data for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from pipelines.report import plots
from pipelines.report.facts import Facts
from pipelines.report.plots import Bar
from pipelines.tokenizers.compare import length_histogram
from tokenizer_build.bands import Strength
from transforms.tokens.lengths import Lengths

LONGEST = 15
SHOWN_LABELS = 8
PERCENTILES = (1, 5, 25, 50, 75, 95, 99, 100)

_LEAST_POWER, _MOST_POWER = 5, 18
"""Documents of fewer tokens, or more, are in the first and the last bar."""

STYLES = {
    "single_word": "one word: size",
    "snake_case": "snake_case",
    "camel_case": "camelCase",
    "pascal_case": "PascalCase",
    "screaming_case": "SCREAMING_CASE",
    "single_capital": "one capital: T",
    "leading_underscore": "_leading underscore",
    "trailing_underscore": "trailing underscore_",
    "double_underscore": "double__underscore",
    "member_prefix": "m_member",
    "other": "other",
}
CATEGORIES = {
    "os": "Operating systems",
    "rtos": "Real-time systems",
    "gpu": "GPUs and parallel APIs",
    "arch": "Architectures",
    "compiler": "Compilers",
    "cpp_std": "C++ standards",
}
_KINDS = ("code", "comment", "whitespace", "preprocessor", "string", "disabled")


def lengths(facts: Facts) -> dict[str, Any]:
    """Return how long tokens and documents are, and the longest tokens of the text."""
    distribution = facts.usage.distribution
    return {
        "tokens": _token_lengths(facts),
        "documents": _document_lengths(distribution),
        "percentiles": [(percentage, distribution.percentile(percentage)) for percentage in PERCENTILES],
        "longest": _longest_tokens(facts),
    }


def _token_lengths(facts: Facts) -> Markup:
    bars = length_histogram(_sizes(facts), facts.usage.ids)
    labels = [str(bar["first"]) for bar in bars]
    series = [
        (label, _shares([bar[what] for bar in bars]))
        for label, what in (("ids", "ids"), ("tokens of the text", "tokens"))
    ]
    return plots.histogram("token-lengths", "Lengths of tokens", labels, series, "bytes of a token, from")


def _document_lengths(distribution: Lengths) -> Markup:
    bounds = [1 << power for power in range(_LEAST_POWER, _MOST_POWER + 1)]
    documents, tokens = dict.fromkeys(bounds, 0), dict.fromkeys(bounds, 0)
    for up_to, number, amount in distribution.doublings():
        bound = min(max(up_to, bounds[0]), bounds[-1])
        documents[bound] += number
        tokens[bound] += amount
    labels = [_power_label(bound) if place % 2 else "" for place, bound in enumerate(bounds)]
    series = [("documents", _shares(list(documents.values()))), ("their tokens", _shares(list(tokens.values())))]
    return plots.histogram("document-lengths", "Lengths of documents", labels, series, "tokens of a document, up to")


def _power_label(bound: int) -> str:
    return str(bound) if bound < 1024 else f"{bound >> 10}k"


def _longest_tokens(facts: Facts) -> dict[str, list[dict[str, Any]]]:
    """Return the longest tokens that occur, of all and of those with a letter."""
    sizes, counts, entries = _sizes(facts), facts.usage.ids, facts.entries
    used = [int(i) for i in np.lexsort((-counts, -sizes)) if counts[i] and sizes[i]]
    lettered = [i for i in used if any(chr(byte).isalpha() for byte in entries[i].token if byte < 128)]

    def rows(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [
            {
                "token": fold_runs(str(entries[i])),
                "bytes": int(sizes[i]),
                "count": int(counts[i]),
                "band": facts.bands[i],
            }
            for i in ids[:LONGEST]
        ]

    return {"Longest tokens that occur": rows(used), "Longest tokens with a letter": rows(lettered)}


def fold_runs(token: str) -> str:
    """Return a token with each run of nine and more of one character as the character and their number.

    Example:
        >>> fold_runs("'//-----------'")
        "'//-{11}'"
    """
    return re.sub(r"(.)\1{8,}", lambda run: f"{run[1]}{{{len(run[0])}}}", token)


def text(facts: Facts) -> dict[str, Any] | None:
    """Return what the lexer found: kinds of bytes, namespaces, styles of identifiers."""
    statistics, namespaces = facts.statistics, facts.namespaces
    if statistics is None or namespaces is None:
        return None
    sizes, styles = statistics["bytes"], statistics["style"]
    kinds = [Bar(kind, sizes[kind], f"{sizes[kind]:,} ({percent(sizes[kind], sizes['total'])})") for kind in _KINDS]
    found = sorted(styles.items(), key=lambda item: -item[1]["total"])
    return {
        "identifiers": statistics["identifiers"],
        "lines": statistics["lines"]["total"],
        "namespaces": namespaces.number,
        "references": namespaces.hits,
        "plots": {
            "Bytes by kind": plots.bars("kinds", "Bytes by kind", kinds, whole=sizes["total"]),
            "Identifier styles": plots.bars(
                "styles",
                "Styles of identifiers",
                [
                    Bar(STYLES.get(name, name), one["total"], _amount(one["total"], statistics["identifiers"]))
                    for name, one in found
                ],
                whole=statistics["identifiers"],
            ),
            "Namespaces": plots.bars(
                "namespaces",
                "Namespaces that are referred to most",
                [
                    Bar(f"{row['namespace']}::", row["hits"], _amount(row["hits"], namespaces.hits))
                    for row in namespaces.rows
                ],
                whole=namespaces.hits,
            ),
        },
    }


def platforms(facts: Facts) -> dict[str, Any] | None:
    """Return the documents of each platform, by category; None if none was found in any document."""
    counts, documents = facts.usage.platforms, facts.usage.total.documents
    if not counts[1:].any():
        return None
    found = {}
    for category, labels in _platform_labels(facts).items():
        bars = [
            Bar(label, int(counts[i]), _amount(int(counts[i]), documents)) for label, i in labels.items() if counts[i]
        ]
        if bars:
            most = sorted(bars, key=lambda bar: -bar.value)[:SHOWN_LABELS]
            title = CATEGORIES.get(category, category)
            found[title] = plots.bars(f"platform-{category}", f"Documents by {category}", most, whole=documents)
    return {"plots": found, "without": int(counts[0]), "documents": documents}


def _platform_labels(facts: Facts) -> Mapping[str, Mapping[str, int]]:
    """Return the labels of the platform ids; only their numbers if the run had another vocabulary of them."""
    if facts.platforms is None:
        return {"platform": {f"id {i}": i for i in range(1, len(facts.usage.platforms))}}
    return facts.platforms.categories


def _sizes(facts: Facts) -> npt.NDArray[np.int64]:
    """Return the bytes of each id; none for an id that only has a name."""
    named = (Strength.CONTROL, Strength.RESERVED)
    return np.array([0 if entry.strength in named else len(entry.token) for entry in facts.entries])


def _shares(numbers: Sequence[int]) -> list[float]:
    return [number / (sum(numbers) or 1) for number in numbers]


def _amount(number: int, whole: int) -> str:
    return f"{number:,} ({percent(number, whole)})"


def percent(part: float, whole: float) -> str:
    """Return a share in per cent; None if the whole is zero.

    Example:
        >>> percent(1, 3), percent(0, 0)
        ('33.3%', '0.0%')
    """
    return f"{part / (whole or 1):.1%}"
