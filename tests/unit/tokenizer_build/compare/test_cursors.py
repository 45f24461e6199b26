"""Cursors of each kind are where they should be, and the tallies are those of the definition."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenizer_build.compare.cursors import KINDS, any_places, line_places, measure_cursors, name_places

TEXTS = [
    b"int getValue(int my_type) { return XMLParser::kMax2 + my_type; }\n",
    '// é only ünicode\nauto s = u8"äöü";\n\n\nstruct A {};\n'.encode(),
    b"void f() {\n    for (std::size_t i = 0; i < 10; ++i) { std::cout << i; }\n}\n",
    b"x",
]


@pytest.fixture(scope="module")
def tokenizer(small_tokenizer: Path) -> cppmill_core.Tokenizer:
    return cppmill_core.Tokenizer.from_dir(small_tokenizer)


@given(st.text(max_size=30))
def test_anywhere_is_every_border_of_two_characters(text: str) -> None:
    ends = [len(text[:at].encode()) for at in range(1, len(text))]
    assert any_places(text.encode()).tolist() == ends


def test_the_parts_of_names_end_at_humps_digits_and_underscores() -> None:
    text = b"XMLParser kMax2 my_type __x4 plain // notHere\n"
    found = [text[:place].split()[-1] for place in name_places(text).tolist()]
    assert found == [b"XML", b"k", b"kMax", b"my", b"my_", b"__", b"__x"]
    assert name_places("größe".encode()).tolist() == []


def test_a_line_ends_before_its_newline() -> None:
    assert line_places(b"\na\n\nb").tolist() == [0, 2, 3]


def test_the_tallies_are_those_of_the_definition(tokenizer: cppmill_core.Tokenizer) -> None:
    names = [hashlib.sha256(text).hexdigest() for text in TEXTS]
    documents = pa.record_batch({"doc_id": names, "content": pa.array(TEXTS, pa.binary())})
    seen = 0
    for seed in range(40):
        [tallies] = measure_cursors([tokenizer], [documents], seed=seed, threads=1)
        for kind, tally in tallies.items():
            for at, text in enumerate(text for text in TEXTS if any(KINDS[kind](text) > 0)):
                whole = tokenizer.encode(text).to_pylist()
                places = [place for place in KINDS[kind](text).tolist() if place]
                expected = set()
                for place in places:
                    prompt = tokenizer.encode(text[:place]).to_pylist()
                    rest = tokenizer.encode(text[place:]).to_pylist()
                    kept = next((n for n, (a, b) in enumerate(zip(prompt, whole)) if a != b), len(prompt))  # noqa: B905
                    stable = tokenizer.stable_prefix(prompt)
                    assert stable <= kept
                    dropped = tokenizer.decode(prompt[stable:])
                    border = place in tokenizer.byte_offsets(whole).to_pylist()
                    numbers = (len(prompt) - kept, len(prompt) - stable, len(dropped))
                    expected.add((border, prompt + rest == whole, *numbers))
                one = (tally.on_border, tally.same, tally.changed_ids, tally.dropped_ids, tally.dropped_bytes)
                assert tuple(values[at] for values in one) in expected
                seen += 1
    assert seen > 300


def test_the_seed_moves_the_cursors_and_threads_do_not(tokenizer: cppmill_core.Tokenizer) -> None:
    names = [f"{number}" for number in range(30)]
    documents = pa.record_batch({"doc_id": names, "content": pa.array([TEXTS[0]] * 30, pa.binary())})
    first, again, other = (
        measure_cursors([tokenizer], [documents], seed=seed, threads=threads)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert first == again != other
