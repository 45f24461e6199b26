from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import Strength
from tokenizer_build.vocabulary import Vocabulary, read_band_files, read_vocabulary

CANDIDATES = Path(__file__).parents[3] / "data" / "reference" / "vocab_candidates.json"
POSITIONS = {"prefixes": "prefix", "suffixes": "suffix", "cpp_stems": "cpp_stem", "common_components": "component"}


@pytest.fixture(scope="module")
def published_candidates() -> dict[str, Any]:
    candidates: dict[str, Any] = json.loads(CANDIDATES.read_text())
    return candidates


def test_every_published_token_has_its_published_id(vocabulary: Vocabulary, published_tokens: dict[int, str]) -> None:
    assert len(published_tokens) == 2304
    ours = {i: token.token for i, token in vocabulary.by_id.items()}
    assert {i: ours.get(i) for i in published_tokens} == published_tokens


def test_published_candidates_without_a_published_id_keep_the_ids_that_they_were_given(
    vocabulary: Vocabulary, published_tokens: dict[int, str], published_candidates: dict[str, Any]
) -> None:
    named = {token for group in published_candidates["candidates"].values() for token in group["tokens"]}
    ids = [vocabulary.by_token[token].id for token in named - set(published_tokens.values())]
    assert sorted(ids) == [4854, *range(5662, 6068)]


def test_every_published_candidate_is_scanned_in_its_category_and_match_mode(
    vocabulary: Vocabulary, published_candidates: dict[str, Any]
) -> None:
    groups = published_candidates["candidates"]
    published = {(t, name, group["match"]) for name, group in groups.items() for t in group["tokens"]}
    ours = {(row["term"], row["category"], row["match"]) for row in vocabulary.scanner_candidates()}
    assert len(published) == 697
    assert published <= ours
    assert {category for _, category, _ in ours} > set(groups)


def test_every_domain_token_is_a_candidate_and_a_category_is_in_one_file(vocabulary: Vocabulary) -> None:
    domain = {token.token for token in vocabulary.tokens if token.band.name == "domain"}
    assert domain <= {candidate.token for candidate in vocabulary.candidates}
    assert len({candidate.source for candidate in vocabulary.candidates}) == len(
        {candidate.category for candidate in vocabulary.candidates}
    )


def test_morphemes_are_counted_where_the_published_scan_did_and_none_is_left_out(
    vocabulary: Vocabulary, published_candidates: dict[str, Any]
) -> None:
    groups = published_candidates["morphemes"]
    published = {(term, POSITIONS[name]) for name, terms in groups.items() for term in terms}
    ours = {(row["morpheme"], row["position"]) for row in vocabulary.scanner_morphemes()}
    assert len(published) == 129
    assert published <= ours
    assert all(morpheme in vocabulary.by_token for morpheme, _ in ours)
    band = {token.token for token in vocabulary.tokens if token.band.name == "morphemes"}
    assert band <= {morpheme for morpheme, _ in ours}


@pytest.mark.parametrize(
    ("token_id", "token"),
    [
        (386, "\\n"),
        (387, "\\n\\n"),
        (1208, "\t"),
        (1211, "\t" * 4),
        (1212, "\r\n"),
        (1213, "\r"),
        (1214, " "),
        (378, "\\"),
    ],
)
def test_escapes_are_text_among_operators_and_control_characters_among_whitespace(
    vocabulary: Vocabulary, token_id: int, token: str
) -> None:
    assert vocabulary.by_id[token_id].token == token


def test_controls_are_the_48_published_ones(vocabulary: Vocabulary) -> None:
    assert [token.id for token in vocabulary.control] == list(range(48))
    assert all(token.strength is Strength.CONTROL for token in vocabulary.control)


def test_only_operators_of_mongodb_and_mlir_are_pinned_in_the_domain_band(vocabulary: Vocabulary) -> None:
    pinned = [t.token for t in vocabulary.tokens if t.band.name == "domain" and t.strength is Strength.PINNED]
    assert sum(token.startswith("$") for token in pinned) == 39
    assert all(token.startswith(("$", "mhlo.", "stablehlo.", "pallas.")) for token in pinned)


def test_the_scanners_lists_do_not_depend_on_file_order(tiny_vocabulary: Path) -> None:
    before = read_vocabulary(tiny_vocabulary).scanner_candidates()
    (tiny_vocabulary / "domain.toml").rename(tiny_vocabulary / "a.toml")
    assert read_vocabulary(tiny_vocabulary).scanner_candidates() == before


@pytest.mark.parametrize("key", ["x", "05", "-1", "1.5", "٣", "9" * 5000], ids=range(6))
def test_a_key_that_is_not_an_id_is_refused(tiny_vocabulary: Path, key: str) -> None:
    (tiny_vocabulary / "keywords.toml").write_text(f'band = "keywords"\n[tokens]\n"{key}" = "auto"\n')
    with pytest.raises(VocabularyConfigError, match="not an id"):
        read_vocabulary(tiny_vocabulary)


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


def test_a_linked_folder_is_refused_if_it_has_files_of_a_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    vocabulary = tmp_path / "vocabulary"
    vocabulary.mkdir()
    (vocabulary / "a.toml").write_text(GOOD)
    (vocabulary / "broken").symlink_to("nowhere")
    (vocabulary / "linked").symlink_to(tmp_path / "elsewhere")
    assert list(read_band_files(vocabulary)) == ["a.toml"]
    (tmp_path / "elsewhere" / "below" / "b.toml").write_text(GOOD)
    with pytest.raises(VocabularyConfigError, match="vocabulary/linked: a link to a folder"):
        read_band_files(vocabulary)


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
        (f"band = {'9' * 5000}", ["not TOML"]),
        (f"band = 0x{'f' * 5000}", ["not TOML", "more than 64 bits"]),
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


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nothing")])
def test_what_is_not_a_file_is_named(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "own.toml")
    with pytest.raises(VocabularyConfigError, match=r"own\.toml: not a file"):
        read_band_files(tmp_path)


def test_an_id_of_thousands_of_digits_is_refused_in_one_short_line(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f'[tokens]\n{"9" * 5000} = "x"\n')
    with pytest.raises(VocabularyConfigError, match=r"^own\.toml: tokens\.9+: not an id") as refused:
        read_vocabulary(tmp_path)
    assert len(str(refused.value)) < 200
