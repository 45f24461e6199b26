"""Shingles are of code tokens, the same everywhere, and equal where the tokens are."""

from __future__ import annotations

from pathlib import Path

import cppmill_core
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.ingest import shingles
from transforms.ingest.shingles import shingle

HEADERS = Path(np.get_include(), "numpy")
COMMENTS = ("line_comment", "block_comment", "whitespace", "newline")


def of(content: bytes, tokens: int = 5) -> set[int]:
    return set(shingle([content], tokens).hashes.tolist())


def runs(content: bytes, tokens: int = 5) -> list[tuple[bytes, ...]]:
    """The shingles themselves, one after the other, as the lexer's tokens say."""
    lexed = cppmill_core.lex(content).to_pylist()
    found = [content[row["start"] : row["end"]] for row in lexed if row["kind"] not in COMMENTS]
    count = max(len(found) - tokens + 1, 1 if found else 0)
    return [tuple(found[place : place + tokens]) for place in range(count)]


@pytest.mark.parametrize("tokens", [1, 5, 8])
def test_equal_hashes_are_equal_runs_of_tokens_in_real_headers(tokens: int) -> None:
    contents = [path.read_bytes() for path in sorted(HEADERS.glob("*.h"))]
    found = shingle(contents, tokens)
    expected = [run for content in contents for run in runs(content, tokens)]
    assert len(expected) > 10_000
    assert len(found.hashes) == len(expected)
    assert (
        len({*zip(found.hashes.tolist(), expected, strict=True)}) == len({*expected}) == len({*found.hashes.tolist()})
    )
    sizes = [len(runs(content, tokens)) for content in contents]
    assert np.diff(found.offsets.astype(np.int64)).tolist() == sizes


def test_hashes_do_not_depend_on_the_batch_or_on_where_a_piece_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [path.read_bytes() for path in sorted(HEADERS.glob("npy_*.h"))]
    whole = shingle(contents, 5).hashes.tolist()
    assert [value for content in contents for value in shingle([content], 5).hashes.tolist()] == whole
    monkeypatch.setattr(shingles, "_PIECE_BYTES", 1000)
    assert shingle(contents, 5).hashes.tolist() == whole


def test_comments_and_white_space_change_nothing() -> None:
    content = (HEADERS / "npy_math.h").read_bytes()
    other = b"/* Another licence. */\n" + content.replace(b"\n", b"\r\n").replace(b"    ", b"\t")
    assert of(other) == of(content)
    assert of(content.replace(b"npy_sinh", b"npy_other")) != of(content)


def test_a_short_document_has_one_shingle_and_one_without_code_has_none() -> None:
    found = shingle([b"int a;", b"", b"// nothing\n", b"int  a ;", b"int b;"], 5)
    assert found.offsets.tolist() == [0, 1, 1, 1, 2, 3]
    assert found.hashes[0] == found.hashes[1] != found.hashes[2]


def test_no_documents_have_no_shingles() -> None:
    assert shingle([], 5).offsets.tolist() == [0]
    assert not len(shingle([], 5).hashes)


def test_a_long_token_is_shown_by_its_beginning() -> None:
    long = b'x = "' + b"a" * shingles._MAX_TOKEN_BYTES
    assert of(long + b'b"') == of(long + b'cc"')
    assert of(long[:-9] + b'b"') != of(long[:-9] + b'cc"')


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5), st.integers(1, 6))
def test_any_bytes_have_shingles(contents: list[bytes], tokens: int) -> None:
    found = shingle(contents, tokens)
    assert np.diff(found.offsets.astype(np.int64)).tolist() == [len(runs(content, tokens)) for content in contents]
    assert len(found.hashes) == found.offsets[-1]


def test_the_hashes_are_these_on_every_machine() -> None:
    found = shingle([b"int main() { return 0; }"], 8).hashes.tolist()
    assert [f"{value:016x}" for value in found] == ["38cfd0ce71dde2a3", "a26190de28e15d1f"]
