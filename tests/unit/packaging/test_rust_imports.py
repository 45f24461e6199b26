"""No circle of Rust files: a file never needs another that, directly or through others, needs it."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
CRATES = ["native/core/src", "native/py/src"]

Module = tuple[str, ...]

IGNORED = re.compile(
    r"""//[^\n]* | r(\#*)".*?"\1 | b?"(?:\\.|[^"\\])*" | b?'(?:\\[^'\n]+|\\'|[^\\'\n])'""", re.VERBOSE | re.DOTALL
)
TESTS_INSIDE = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\n)*mod \w+ \{.*", re.MULTILINE | re.DOTALL)
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
INNER_BRACES = re.compile(r"([\w:]*)\{([^{}]*)\}")
PATH = re.compile(r"(?<![\w:$])(?<!\(in )(?:[A-Za-z_]\w*::)+[A-Za-z_]\w*")


@dataclass
class RustFile:
    """What one file imports, and the paths that its code names."""

    path: Path
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    needed: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> RustFile:
        """Reads a file without its comments, strings and inner tests."""
        text = TESTS_INSIDE.sub("", IGNORED.sub("", path.read_text()))
        code = USE.sub("", text)
        file = cls(path, needed=[tuple(found[0].split("::")) for found in PATH.finditer(code)])
        for public, tree in USE.findall(text):
            for name, imported in expand(tree):
                file.imports[name] = imported
                # A re-export is a need only of a file that uses the name itself.
                if not public or re.search(rf"\b{name}\b", code):
                    file.needed.append(imported)
        return file


def expand(tree: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Takes a `use` tree apart: each name with its path."""
    while "{" in tree:
        tree = INNER_BRACES.sub(lambda found: ",".join(found[1] + part.strip() for part in found[2].split(",")), tree)
    for whole in filter(None, map(str.strip, tree.split(","))):
        path, _, alias = whole.partition(" as ")
        parts = path.removesuffix("::self").removesuffix("::*").strip().split("::")
        if parts[-1]:
            yield alias.strip() or parts[-1], tuple(parts)


class Crate:
    """The files of a crate by their modules; tests are left out."""

    def __init__(self, source: Path) -> None:
        self.files: dict[Module, RustFile] = {}
        for path in sorted(source.rglob("*.rs")):
            *folders, name = path.relative_to(source).with_suffix("").parts
            if "tests" not in (*folders, name):
                module = tuple(folders) if name in ("mod", "lib") else (*folders, name)
                self.files[module] = RustFile.read(path)

    def defining(self, module: Module, path: tuple[str, ...], seen: frozenset[object] = frozenset()) -> Module | None:
        """Finds the module that defines what `path` names in `module`; none if it is outside of the crate."""
        first, *rest = path
        if (module, path) in seen:
            return None
        seen |= {(module, path)}
        if first in ("crate", "self", "super"):
            start = {"crate": (), "self": module, "super": module[:-1]}[first]
            return self.inside(start, tuple(rest), seen)
        if (*module, first) in self.files:
            return self.inside((*module, first), tuple(rest), seen)
        named = self.files[module].imports.get(first)
        if named and named[0] != first:  # a crate may have the name of what is imported from it
            return self.defining(module, (*named, *rest), seen)
        return None

    def inside(self, module: Module, path: tuple[str, ...], seen: frozenset[object]) -> Module | None:
        if not path:
            return module
        if path[0] == "super":
            return self.inside(module[:-1], path[1:], seen)
        imports = self.files[module].imports
        if (*module, path[0]) in self.files or (path[0] in imports and imports[path[0]] != path):
            return self.defining(module, path, seen)
        return module

    def graph(self) -> dict[str, set[str]]:
        """Names the files that each file needs."""
        needs: dict[str, set[str]] = {}
        for module, file in self.files.items():
            found = {self.defining(module, path) for path in file.needed} - {None, module}
            needs[str(file.path)] = {str(self.files[other].path) for other in found if other is not None}
        return needs


def circle(source: Path) -> list[str]:
    """Finds a circle of files, none if there is no circle."""
    try:
        graphlib.TopologicalSorter(Crate(source).graph()).prepare()
    except graphlib.CycleError as error:
        return [str(Path(path).relative_to(source)) for path in error.args[1]]
    return []


@pytest.mark.parametrize("crate", CRATES)
def test_no_rust_file_needs_itself_through_others(crate: str) -> None:
    assert not circle(REPOSITORY / crate)


def test_the_files_of_the_core_are_found_with_what_they_need() -> None:
    graph = Crate(REPOSITORY / CRATES[0]).graph()
    core = {str(Path(path).relative_to(REPOSITORY / CRATES[0])) for path in graph}
    assert {"lib.rs", "encode/mod.rs", "encode/bpe/merges.rs"} <= core
    assert sum(map(len, graph.values())) > len(graph)


LEAF = "pub(super) struct Leaf;"
TREES = [
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "use super::b::B;", "b.rs": LEAF}, []),
    ({"lib.rs": "mod a;\npub use a::A;", "a.rs": "use crate::Other;"}, []),
    ({"lib.rs": "mod a;\npub use a::A;\nfn f(a: A) {}", "a.rs": "use crate::Other;"}, ["a.rs", "lib.rs"]),
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "use super::b;", "b.rs": "fn f() { crate::a::g() }"}, ["a.rs", "b.rs"]),
    ({"lib.rs": "", "a.rs": "use crate::b::{\n    c::{self, C},\n};", "b/mod.rs": "", "b/c.rs": LEAF}, []),
    (
        {"lib.rs": "", "a.rs": "use crate::b::C;", "b/mod.rs": "pub use c::C;", "b/c.rs": "use crate::a::A;"},
        ["a.rs", "b/c.rs"],
    ),
    ({"lib.rs": "", "a.rs": "use crate::b::B; // b", "b.rs": '// use crate::a::A;\nfn f() { "crate::a::A" }'}, []),
    ({"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"}, []),
]


@pytest.mark.parametrize(("tree", "expected"), TREES)
def test_a_circle_is_found_in_a_small_tree(tree: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    for name, text in tree.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sorted(set(circle(tmp_path))) == expected
