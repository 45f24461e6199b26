"""N-grams: those of a plain reading of the text, whatever its pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.filters import ngrams
from transforms.filters.ngrams import iter_ngrams

HEADER = (Path(np.get_include()) / "numpy/npy_common.h").read_bytes()


def plain_words(text: bytes) -> list[tuple[bytes, int]]:
    """The words of a text, with their places: the slow twin."""
    return [(found[0].lower(), found.start()) for found in re.finditer(rb"[0-9A-Za-z_\x80-\xff]+", text)]


def plain_ngrams(text: bytes, words: int) -> Iterator[tuple[bytes, ...]]:
    found = [word for word, _ in plain_words(text)]
    yield from (tuple(found[first : first + words]) for first in range(len(found) - words + 1))


def hashes_of(text: bytes, words: int) -> list[int]:
    return [int(value) for piece in iter_ngrams(text, words) for value in piece.hashes]


@given(
    text=st.lists(st.sampled_from([b"a", b"B_", b"\xc3\xa9", b"12", b" ", b"\n", b"-", b"{", b"\0"]), max_size=40).map(
        b"".join
    ),
    words=st.integers(1, 5),
)
def test_equal_n_grams_have_equal_hashes_and_no_others_have(text: bytes, words: int) -> None:
    plain, hashes = list(plain_ngrams(text, words)), hashes_of(text, words)
    assert len(hashes) == len(plain)
    assert len(dict(zip(plain, hashes, strict=True))) == len(set(plain)) == len(set(hashes))
    starts = [int(start) for piece in iter_ngrams(text, words) for start in piece.starts]
    if len(text) <= ngrams.PIECE_BYTES:
        assert starts == [start for _, start in plain_words(text)]


@pytest.mark.parametrize("words", [1, 2, 13])
@pytest.mark.parametrize("piece_bytes", [400, 2000])
def test_a_text_in_pieces_has_the_same_n_grams_in_the_same_places(
    words: int, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hashes_of(HEADER, words)
    assert len(whole) == len(plain_words(HEADER)) - words + 1
    monkeypatch.setattr(ngrams, "PIECE_BYTES", piece_bytes)
    pieces = list(iter_ngrams(HEADER, words))
    assert len(pieces) > 3
    assert [int(value) for piece in pieces for value in piece.hashes] == whole
    placed = [int(start) for piece in pieces for start in piece.starts[: len(piece.hashes)]]
    assert placed == [start for _, start in plain_words(HEADER)[: len(whole)]]


def test_lines_and_words_without_end_are_read_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "PIECE_BYTES", 100)
    lengths = [len(piece.starts) for piece in iter_ngrams(b"ab " * 2000, 3)]
    assert max(lengths) <= 100
    assert sum(len(piece.hashes) for piece in iter_ngrams(b"x" * 5000, 3)) == 0


def test_layout_case_and_punctuation_play_no_part() -> None:
    assert hashes_of(b"for (int i = 0;", 4) == hashes_of(b"/* FOR\tint\n */ i[0]", 4)
    assert hashes_of(b"a b", 2) != hashes_of(b"b a", 2)
    assert hashes_of(b"ab c", 2) != hashes_of(b"a bc", 2)
