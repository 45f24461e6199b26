"""Globs: what they match, and which folders are walked for them."""

from __future__ import annotations

from glob import escape

import pytest

from transforms.sources.globs import Glob, is_glob, split_glob


def matches(pattern: str, path: str) -> bool:
    """Tell whether a walk gets to a path that matches."""
    glob = Glob(pattern)
    folders = path.split("/")[:-1]
    reached = all(glob.may_hold("/".join(folders[: depth + 1])) for depth in range(len(folders)))
    return reached and glob.matches(path)


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
        ("a**b.h", "axb.h", True),
        ("*", "new\nline", True),
        ("*", "caf\udce9", True),
    ],
)
def test_a_glob_matches_as_a_shell_does(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


def test_a_literal_name_is_not_a_pattern() -> None:
    glob = Glob(escape("a[1]*.cpp"))
    assert glob.matches("a[1]*.cpp")
    assert not glob.matches("a1x.cpp")
    assert not glob.may_hold("a1x.cpp")


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("a*/b/*.h", "ab", True),
        ("a*/b/*.h", "ba", False),
        ("a*/b/*.h", "ab/b", True),
        ("a*/b/*.h", "ab/c", False),
        ("a*/b/*.h", "ab/b/x.h/deeper", False),
        ("a/**/c/*.h", "a/x/y/z", True),
        ("a/**/c/*.h", "b/x", False),
    ],
)
def test_folders_without_a_match_are_not_walked(pattern: str, folder: str, expected: bool) -> None:
    assert Glob(pattern).may_hold(folder) is expected


def test_a_pattern_is_split_at_its_first_wildcard() -> None:
    assert split_glob("/data/pro*/src/*.h") == ("/data/", "pro*/src/*.h")
    assert split_glob("*.h") == ("", "*.h")
    assert is_glob("a[b]")
    assert not is_glob("a/b.h")
