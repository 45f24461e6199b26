"""Licences by their text on a labelled sample of real comments: what is found, and what is missed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from transforms.filters.license_texts import find_notices, states_other_conditions

SAMPLE = Path(__file__).parents[3] / "data" / "licenses.jsonl"
"""Texts as `find_notices` looks at them, how many documents of the sample have each, and the licence that a reader saw:
by its text or a notice, or by its name alone. And documents with a folder's licence, and whether it is theirs.
"""


def rows(origin: str) -> list[dict[str, Any]]:
    found = map(json.loads, SAMPLE.read_text().splitlines())
    return [row for row in found if row["from"] == origin]


def test_the_labelled_texts_give_the_figures_of_the_page() -> None:
    """docs/how-to/filters.md: recall and precision of texts; a name alone is not found."""
    counts = Counter[str]()
    for row in rows("text"):
        found = find_notices(b"/* " + row["text"].encode("latin-1") + b" */")
        said = "right" if found else "missed"
        counts[f"{said} {row['by']}" if found in (None, row["is"]) else "wrong"] += row["documents"]
    assert counts == {"right text": 111, "missed text": 13, "missed name": 21, "missed None": 26}


def test_what_inherits_a_licence_says_nothing_else() -> None:
    inherited = rows("folder")
    assert (len(inherited), sum(row["is"] for row in inherited)) == (36, 34)
    heads = [row["text"].encode("latin-1") for row in inherited]
    assert not any(find_notices(head) or states_other_conditions(head) for head in heads)
