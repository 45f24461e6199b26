"""The examples in the stub's docstrings run and have the results that they show."""

import ast
import doctest
import json
import pathlib
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import Tokenizer

STUB = Path(cppmill_core.__file__).with_name("_native.pyi")
DOCUMENTED = ast.ClassDef | ast.FunctionDef


def documented() -> list[tuple[str, str]]:
    """Return the name and docstring of everything with an example."""
    nodes = [node for node in ast.walk(ast.parse(STUB.read_text())) if isinstance(node, DOCUMENTED)]
    return [(node.name, text) for node in nodes if ">>>" in (text := ast.get_docstring(node) or "")]


@pytest.mark.parametrize(("name", "text"), documented(), ids=[name for name, _ in documented()])
def test_the_example_has_the_result_that_it_shows(
    name: str, text: str, directory: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tokenizer").symlink_to(directory)
    monkeypatch.chdir(tmp_path)
    modules = {"pa": pa, "json": json, "pathlib": pathlib}
    names = {name: getattr(cppmill_core, name) for name in cppmill_core.__all__} | modules | {"tokenizer": tokenizer}
    example = doctest.DocTestParser().get_doctest(text, names, name, str(STUB), 0)
    failures: list[str] = []
    doctest.DocTestRunner().run(example, out=failures.append)
    assert not failures, "".join(failures)


def test_every_call_of_the_tokenizer_has_an_example() -> None:
    calls = {name for name in vars(Tokenizer) if not name.startswith("_") and callable(getattr(Tokenizer, name))}
    assert calls - {name for name, _ in documented()} == {"from_dir", "control_id"}
