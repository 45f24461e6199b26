"""The notebooks of docs/ run, and print what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.site.notebooks import execute, printed_by, to_markdown

NOTEBOOKS = sorted((Path(__file__).parents[3] / "docs").rglob("*.ipynb"))

pytestmark = [
    # What nbclient leaves open when the kernel ends.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def printed(content: dict) -> list[list[str]]:
    return [list(printed_by(cell)) for cell in content["cells"] if cell["cell_type"] == "code"]


@pytest.mark.engines  # a kernel and a run in it take nine seconds
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_prints_what_it_says(notebook: Path, tmp_path: Path) -> None:
    """If this fails for a good reason, `python -m deploy.site.notebooks FILE` writes what it prints now."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert printed(execute(notebook, tmp_path)) == printed(content)
    assert sum(map(bool, printed(content))) > 5


def test_a_notebook_is_a_page_with_what_its_cells_print(tmp_path: Path) -> None:
    code = {"cell_type": "code", "source": ["1 +\\\n", " 1"], "outputs": []}
    code["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
    ]
    notebook = tmp_path / "sums.ipynb"
    notebook.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Sums"]}, code]}))
    assert to_markdown(notebook) == (
        '# Sums\n\n<a href="sums.ipynb" download>Download the notebook</a>\n\n'
        "```python\n1 +\\\n 1\n```\n\n```text\none\n2\n```\n"
    )
