"""Names, samples and limits of members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.options import IngestOptions
from schemas.reasons import Column, Dead, Filtered
from transforms.sources.document import (
    MAX_NAME_BYTES,
    Archive,
    DamageError,
    accepts_extension,
    bounded,
    column_of,
    display_path,
    in_sample,
    label,
    normalise,
)


@given(st.text())
def test_a_normalised_name_never_leaves_its_folder(name: str) -> None:
    parts = normalise(name).split("/")
    assert not {"", ".", ".."} & set(parts)


@given(st.binary(max_size=64).map(lambda raw: raw.decode("utf-8", "surrogateescape")) | st.text())
def test_a_path_is_shown_as_utf8_without_nul(path: str) -> None:
    shown = display_path(path)
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert "\0" not in shown


@given(st.characters(codec=None, categories=["Cs"]))
def test_a_lone_surrogate_is_percent_encoded(character: str) -> None:
    assert display_path(f"a{character}.cpp").isascii()


def test_a_name_that_is_not_utf8_is_percent_encoded_whole() -> None:
    assert display_path("sub dir/latin1_\udce9.cpp") == "sub%20dir/latin1_%E9.cpp"
    assert display_path("sub dir/\u540d.cpp") == "sub dir/\u540d.cpp"


@given(*[st.lists(st.sampled_from([b"\xff", b"\0", b"%", b"25", b"FF", b"%FF", b"%00", b"a"]), max_size=5)] * 2)
def test_two_names_are_never_shown_alike(one: list[bytes], other: list[bytes]) -> None:
    names = [b"".join(parts).decode("utf-8", "surrogateescape") for parts in (one, other)]
    assert (display_path(names[0]) == display_path(names[1])) == (names[0] == names[1])


def test_a_name_and_the_encoded_form_of_another_differ() -> None:
    names = ["\udcff.cpp", "%FF.cpp", "%25FF.cpp", "100%.cpp", "a%20b.cpp"]
    assert list(map(display_path, names)) == ["%FF.cpp", "%25FF.cpp", "%2525FF.cpp", "100%.cpp", "a%20b.cpp"]


@given(st.text(min_size=0, max_size=3_000), st.integers(64, 200))
def test_bounded_text_fits_and_differs_where_the_whole_does(text: str, size: int) -> None:
    short = bounded(text, size)
    assert len(short.encode("utf-8")) <= size
    assert short == text or bounded(text + "x", size) != short


def test_a_long_path_keeps_its_extension() -> None:
    shown = display_path("d/" * 5_000 + "x.cpp")
    assert len(shown) <= MAX_NAME_BYTES
    assert shown.endswith("x.cpp")


@pytest.mark.parametrize(
    ("path", "accepted"),
    [
        ("a.cpp", True),
        ("A.CPP", True),
        ("x.c++", True),
        ("a.tar", False),
        ("cpp", False),
        ("a.cpp/b", False),
        (".h", True),
    ],
)
def test_extensions_are_accepted_without_regard_to_case(path: str, accepted: bool) -> None:
    assert accepts_extension(path, IngestOptions()) is accepted


def test_a_sample_is_nested_in_a_larger_one() -> None:
    paths = [f"{index}.cpp" for index in range(4_000)]
    small = {path for path in paths if in_sample(path, 0.1)}
    assert small < {path for path in paths if in_sample(path, 0.3)}
    assert 300 < len(small) < 500


def test_growth_beyond_measure_is_damage() -> None:
    archive = Archive("a.zip", 10, "a", IngestOptions(max_expansion=2, max_dense_bytes=1 << 31))
    archive.grow(1 << 30)
    with pytest.raises(DamageError) as raised:
        archive.grow(1)
    assert raised.value.reason is Dead.EXPANSION


def test_a_small_archive_may_not_be_dense() -> None:
    archive = Archive("a.zip", 2 << 20, "a", IngestOptions())
    archive.grow(256 << 20)
    with pytest.raises(DamageError, match="expands to more than 268435456 bytes"):
        archive.grow(1)


def test_a_large_archive_may_grow_in_proportion() -> None:
    archive = Archive("a.tar.gz", 1 << 30, "a", IngestOptions(max_expansion=3))
    archive.grow(3 << 30)
    with pytest.raises(DamageError):
        archive.grow(1)


def test_reasons_are_in_their_columns() -> None:
    assert {column_of(reason) for reason in Dead} == {Column.DEAD}
    assert {column_of(reason) for reason in Filtered} == {Column.FILTERED}


@pytest.mark.parametrize(("value", "text"), [("p", "p"), ("", None), (7, None), ("a\ud800\0", "a?"), (None, None)])
def test_a_label_is_bounded_text(value: object, text: str | None) -> None:
    assert label(value) == text
