"""What the pages of docs/ print is what their code prints."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def pages() -> list[Path]:
    """The pages with examples."""
    return [path for path in sorted(DOCS.rglob("*.md")) if any(">>> " in block for block in examples(path))]


def examples(path: Path) -> list[str]:
    return BLOCK.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_prints_what_it_says(page: Path) -> None:
    """The blocks of a page are one session."""
    session = doctest.DocTestParser().get_doctest("\n".join(examples(page)), {}, page.name, str(page), 0)
    failures: list[str] = []
    results = doctest.DocTestRunner().run(session, out=failures.append)
    assert not failures, "".join(failures)
    assert results.attempted == page.read_text(encoding="utf-8").count("\n>>> ")


def test_there_is_a_page_to_run() -> None:
    assert "bpe.md" in [page.name for page in pages()]
