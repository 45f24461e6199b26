"""The options that the pages of docs/ name exist, and have the defaults that the pages give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from configs.tables import FLAGS, KEYS, TABLES

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"
ROW = re.compile(r"^\| `(?:(\w+)\.)?(\w+)` \| ([^|]+) \|", re.M)


def rows(page: str, heading: str) -> list[tuple[str, str, str]]:
    """The table, key and default of each row of the tables that have a heading; the table may be left out."""
    tables = re.findall(rf"^{re.escape(heading)}\n\|[-|: ]+\n((?:\|.*\n)+)", (HOW_TO / page).read_text(), re.M)
    return [row for table in tables for row in ROW.findall(table)]


@pytest.mark.parametrize(
    ("page", "heading", "table", "count"),
    [
        ("vocabulary/choosing-a-vocabulary.md", "| key | default | why |", "build", 13),
        ("filters.md", "| key of `[ingest]` | default | |", "ingest", 3),
    ],
)
def test_a_default_of_a_page_is_that_of_the_model(page: str, heading: str, table: str, count: int) -> None:
    found = rows(page, heading)
    assert len(found) == count
    for named, key, said in found:
        default = TABLES[named or table].model_fields[key].default
        if said in ("none", "off"):
            assert default is None, key
        elif said != "all four":
            assert json.loads(said.replace(",", "")) == default, key


def test_the_filters_of_the_page_are_keys_with_flags() -> None:
    text = (HOW_TO / "filters.md").read_text().split("| key of `[ingest]` | reason |")[1].split("\n\n")[0]
    keys = {key for line in text.splitlines() for key in re.findall(r"`(\w+)`", line.split("|")[1])} - {"ingest"}
    assert len(keys) == 13
    assert keys <= KEYS["ingest"] & {flag.key for flag in FLAGS.values()}
