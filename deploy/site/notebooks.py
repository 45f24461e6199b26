"""Notebooks of docs/: shown as pages, with what their cells print; and run again, to write that down.

`python -m deploy.site.notebooks FILE` runs a notebook in an empty folder and writes what its cells print into it. The
tests run it too, and compare. Only text is kept: a table is what `print` shows of it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

SUFFIX = ".ipynb"
TIMEOUT_SECONDS = 120


def to_markdown(notebook: Path) -> str:
    """Return a notebook as a page: text as it is, code and what it prints as blocks, and a link to the file."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    link = f'<a href="{notebook.name}" download>Download the notebook</a>'
    first, *others = [part for cell in cells for part in _blocks(cell)]
    return "\n\n".join([first, link, *others]) + "\n"


def _blocks(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        yield source
        return
    yield f"```python\n{source}\n```"
    if printed := "".join(printed_by(cell)).rstrip():
        yield f"```text\n{printed}\n```"


def printed_by(cell: dict[str, Any]) -> Iterator[str]:
    """Yield what a cell of code has printed, and the text of its value."""
    for output in cell["outputs"]:
        yield "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])


def execute(notebook: Path, folder: Path) -> dict[str, Any]:
    """Run a notebook with this Python, and return it with the text that its cells give.

    Args:
        notebook: The file; it is only read.
        folder: Where it runs.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    import nbformat
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(content, timeout=TIMEOUT_SECONDS, kernel_name="python3", resources=resources).execute()
    return _only_text(json.loads(nbformat.writes(content)))


def _only_text(content: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook without what differs from run to run, and without other forms of its text."""
    content["metadata"] = {"language_info": {"name": "python"}}
    for cell in content["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
            cell["outputs"] = list(_plain(cell["outputs"]))
    return content


def _plain(outputs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the outputs of a cell; what is printed comes in any number of pieces, and is one here."""
    for (kind, name), group in groupby(outputs, key=lambda output: (output["output_type"], output.get("name"))):
        if kind == "stream":
            text = "".join("".join(output["text"]) for output in group)
            yield {"name": name, "output_type": kind, "text": text.splitlines(keepends=True)}
            continue
        for output in group:
            data = {"text/plain": output["data"]["text/plain"]}
            yield {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def main() -> None:
    """Run a notebook and write what its cells print into it."""
    parser = argparse.ArgumentParser(prog="python -m deploy.site.notebooks", description=__doc__)
    parser.add_argument("notebook", type=Path)
    notebook = parser.parse_args().notebook
    with tempfile.TemporaryDirectory(prefix="cppmill-notebook-") as folder:
        content = execute(notebook, Path(folder))
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
