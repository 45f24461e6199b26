"""Globs, a component at a time."""

from __future__ import annotations

import pytest

from transforms.sources.globs import Glob, is_glob, split_glob


def matches(pattern: str, path: str) -> bool:
    glob = Glob(tuple(pattern.split("/")))
    state = glob.start()
    for part in path.split("/"):
        state = glob.advance(state, part)
    return glob.accepts(state)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.h", "a.h", True),
        ("*.h", "a/b.h", False),
        ("*/b.h", "a/b.h", True),
        ("**/*.h", "b.h", True),
        ("**/*.h", "a/b/c.h", True),
        ("a/**", "a/b/c.h", True),
        ("a/**/c/*.h", "a/c/x.h", True),
        ("a/**/c/*.h", "a/b/b/c/x.h", True),
        ("a/**/c/*.h", "a/b/x.h", False),
        ("f?[0-9].cc", "fo7.cc", True),
        ("f?[!0-9].cc", "fo7.cc", False),
        ("*", "new\nline", True),
        ("*", "caf\udce9", True),
    ],
)
def test_a_glob_matches_as_a_shell_does(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


def test_a_literal_name_is_no_pattern() -> None:
    glob = Glob(("a[1]*.cpp",), literal=True)
    assert glob.accepts(glob.advance(glob.start(), "a[1]*.cpp"))
    assert not glob.advance(glob.start(), "a1x.cpp")


def test_a_pattern_is_split_at_its_first_wildcard() -> None:
    assert split_glob("/data/pro*/src/*.h") == ("/data/", "pro*/src/*.h")
    assert split_glob("*.h") == ("", "*.h")
    assert is_glob("a[b]")
    assert not is_glob("a/b.h")
