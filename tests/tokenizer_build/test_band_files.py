from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import VocabularyConfigError
from tokenizer_build.vocabulary import read_band_files

GOOD = 'band = "domain"\n[[candidates]]\ncategory = "nccl"\nmatch = "ident"\n[candidates.tokens]\n5622 = "ncclSend"\n'


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.toml", "a.toml"):
        (tmp_path / name).write_text(GOOD)
    files = read_band_files(tmp_path)
    assert list(files) == ["a.toml", "b.toml"]
    assert files["a.toml"].candidates[0].tokens == {"5622": "ncclSend"}


def test_subfolders_are_read_and_do_not_change_the_order(tmp_path: Path) -> None:
    for name in ("z/a.toml", "b.toml", "a/c.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    assert list(read_band_files(tmp_path)) == ["z/a.toml", "b.toml", "a/c.toml"]


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("z/a.toml", "b/a.toml"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(VocabularyConfigError, match="b/a.toml and .*z/a.toml: two files with one name"):
        read_band_files(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("match", "macth"), ["candidates.0.macth", "unknown key", "did you mean 'match'?"]),
        (GOOD.replace('"ident"', '"idnet"'), ["candidates.0.match", "'idnet'", "did you mean 'ident'?", "sql_string"]),
        (GOOD.replace('"domain"', '"domian"'), ["band", "'domian'", "did you mean 'domain'?"]),
        (GOOD.replace('category = "nccl"\n', ""), ["candidates.0.category", "missing"]),
        (GOOD.replace('"ncclSend"', "7"), ["candidates.0.tokens.5622", "= 7", "string"]),
        (GOOD + "tokes = {}\n", ["tokes", "string"]),
        ("tokes = {}\n" + GOOD, ["tokes: unknown key", "did you mean 'tokens'?"]),
        (GOOD + '5622 = "twice"\n', ["not TOML", "line 7"]),
        ("band = ", ["not TOML"]),
        (GOOD + '[[morphemes]]\nposition = "sufix"\nterms = []\n', ["'sufix'", "did you mean 'suffix'?"]),
        (GOOD + '[[morphemes]]\nposition = "suffix"\nterm = []\n', ["morphemes.0.term: unknown", "'terms'"]),
    ],
)
def test_a_file_that_is_not_of_the_form_is_refused_with_file_key_value_and_the_nearest(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(VocabularyConfigError) as refused:
        read_band_files(tmp_path)
    for part in (str(path), *said):
        assert part in str(refused.value)


def test_bytes_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b'band = "\xff"')
    with pytest.raises(VocabularyConfigError, match="not TOML"):
        read_band_files(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VocabularyConfigError, match="no \\*.toml files"):
        read_band_files(tmp_path)
