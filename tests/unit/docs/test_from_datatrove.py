"""The page for users of datatrove names every step that the package has."""

from __future__ import annotations

import ast
import re
from importlib.metadata import distribution
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "pipelines" / "from-datatrove.md"
ROOTS = {"PipelineStep", "PipelineExecutor"}
ABSTRACT = re.compile(r"Base\w+|Pipeline\w+|BinaryReaderThreaded|DiskWriter")


def steps() -> set[str]:
    """The classes of pipelines and executors, by what the source says: many need packages that are not here."""
    package = distribution("datatrove")
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for file in package.files or ()
        if file.suffix == ".py" and file.parts[0] == "datatrove"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    found = set(ROOTS)
    while more := {name for name, parents in bases.items() if parents & found} - found:
        found |= more
    return {name for name in found if not ABSTRACT.fullmatch(name)}


def test_every_step_and_tool_of_datatrove_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tools = {script.name for script in distribution("datatrove").entry_points}
    assert len(steps()) > 60
    assert sorted(name for name in steps() | tools if f"`{name}`" not in text) == []
    assert f"datatrove {distribution('datatrove').version}" in text
