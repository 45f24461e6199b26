"""A fixed id is pinned for life: whatever is scanned, decided or added, it never moves; a released one never goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from tokenizer_build.bands import BANDS, DOMAIN
from tokenizer_build.build import BuildSummary, ScanCounts
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.lock import read_lock, release_vocabulary
from tokenizer_build.vocabulary import Vocabulary

Build = Callable[..., BuildSummary]
ScanDocuments = Callable[[list[bytes]], ScanCounts]

ARROW = Path(pa.get_include()) / "arrow"
TREES = {
    "numpy": Path(np.get_include()),
    "arrow compute": ARROW / "compute",
    "arrow utilities": ARROW / "util",
}
CORPORA = list(TREES)


@pytest.fixture(scope="module")
def corpora(scan_documents: ScanDocuments) -> dict[str, ScanCounts]:
    """The counts of three header trees that share no file."""
    paths = {name: sorted(path for path in tree.rglob("*.h")) for name, tree in TREES.items()}
    assert min(map(len, paths.values())) > 10
    return {name: scan_documents([path.read_bytes() for path in files]) for name, files in paths.items()}


@pytest.fixture(scope="module")
def options(lenient: BuildOptions) -> BuildOptions:
    """Small enough for the smallest tree, and it keeps what was found at all."""
    return lenient.model_copy(update={"vocab_size": 8192, "min_hits": 1})


@pytest.fixture(scope="module")
def built(
    build: Build, corpora: dict[str, ScanCounts], options: BuildOptions, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A tokenizer of each tree."""
    folder = tmp_path_factory.mktemp("pinned")
    for name, counts in corpora.items():
        build(folder / name, counts=counts, options=options)
    return {name: folder / name for name in corpora}


def manifest(tokenizer: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((tokenizer / "manifest.json").read_bytes())
    return read


def fixed_ids(tokenizer: Path) -> dict[str, int]:
    return {token["token"]: token["id"] for token in manifest(tokenizer)["tokens"]}


def learned(tokenizer: Path) -> dict[int, str]:
    vocab = json.loads((tokenizer / "tokenizer.json").read_bytes())["model"]["vocab"]
    fixed = set(fixed_ids(tokenizer).values())
    return {i: token for token, i in vocab.items() if i not in fixed and not token.startswith("<RESERVED")}


def free_domain_id(vocabulary: Vocabulary) -> int:
    band = next(band for band in BANDS if band.name == DOMAIN)
    return next(i for i in range(band.first, band.last + 1) if i not in vocabulary.by_id)


def assert_nothing_moved(before: dict[str, int], after: dict[str, int]) -> None:
    """No token has another id, and no id another token."""
    assert {t: after[t] for t in before.keys() & after.keys()} == {t: before[t] for t in before.keys() & after.keys()}
    tokens = {i: token for token, i in before.items()}
    assert [token for token, i in after.items() if tokens.get(i, token) != token] == []


def test_the_three_corpora_decide_and_learn_differently(built: dict[str, Path]) -> None:
    domains = {name: frozenset(fixed_ids(path)) for name, path in built.items()}
    assert len(set(domains.values())) == 3, "the test would prove little"
    tables = [learned(path) for path in built.values()]
    common = set.intersection(*map(set, tables))
    assert any(len({table[i] for table in tables}) > 1 for i in common)


def test_on_any_corpus_a_fixed_token_has_the_id_of_its_file(built: dict[str, Path], vocabulary: Vocabulary) -> None:
    for path in built.values():
        assert all(vocabulary.by_token[token].id == token_id for token, token_id in fixed_ids(path).items())


@pytest.mark.parametrize("first", CORPORA)
@pytest.mark.parametrize("second", CORPORA)
def test_no_fixed_id_moves_from_corpus_to_corpus(built: dict[str, Path], first: str, second: str) -> None:
    assert_nothing_moved(fixed_ids(built[first]), fixed_ids(built[second]))


@pytest.mark.parametrize(
    "changes",
    [
        {"min_hits": 50},
        {"generic_document_share": 0.9},
        {"min_category_projects": 1, "min_category_hits_per_name": 1_000_000},
        {"distinctive_shapes": ()},
        {"vocab_size": 8200},
    ],
    ids=str,
)
def test_no_fixed_id_moves_with_a_threshold(
    build: Build,
    built: dict[str, Path],
    corpora: dict[str, ScanCounts],
    options: BuildOptions,
    tmp_path: Path,
    changes: dict[str, object],
) -> None:
    build(tmp_path / "out", counts=corpora[CORPORA[0]], options=options.model_copy(update=changes))
    before, after = fixed_ids(built[CORPORA[0]]), fixed_ids(tmp_path / "out")
    assert manifest(built[CORPORA[0]]) != manifest(tmp_path / "out")
    assert_nothing_moved(before, after)


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_fixed_id_moves_with_an_added_token(
    build: Build,
    built: dict[str, Path],
    corpora: dict[str, ScanCounts],
    options: BuildOptions,
    vocabulary: Vocabulary,
    vocabulary_copy: Path,
    tmp_path: Path,
    corpus: str,
) -> None:
    new_id = free_domain_id(vocabulary)
    added = f'band = "domain"\n[tokens]\n{new_id} = "added_by_the_test"\n'
    (vocabulary_copy / "domains" / "domain_added.toml").write_text(added)
    build(tmp_path / "out", counts=corpora[corpus], vocabulary_dir=vocabulary_copy, options=options)
    before, after = fixed_ids(built[corpus]), fixed_ids(tmp_path / "out")
    assert after == before | {"added_by_the_test": new_id}


@pytest.fixture
def released(built: dict[str, Path], vocabulary_copy: Path) -> Path:
    """The vocabulary with every fixed id of the first tree's tokenizer locked."""
    release_vocabulary(vocabulary_copy, built[CORPORA[0]], "1.0")
    return vocabulary_copy


@pytest.mark.parametrize("corpus", CORPORA[1:])
def test_a_released_token_that_another_corpus_would_cut_stays_and_is_reported(
    build: Build,
    built: dict[str, Path],
    corpora: dict[str, ScanCounts],
    options: BuildOptions,
    released: Path,
    tmp_path: Path,
    corpus: str,
) -> None:
    before, unlocked = fixed_ids(built[CORPORA[0]]), fixed_ids(built[corpus])
    cut = before.keys() - unlocked.keys()
    assert cut, "the test would prove nothing"
    summary = build(tmp_path / "out", counts=corpora[corpus], vocabulary_dir=released, options=options)
    assert fixed_ids(tmp_path / "out") == before | unlocked
    assert set(summary.kept_by_lock) == cut
    findings = (tmp_path / "out" / "findings.md").read_text()
    said = next(line for line in findings.splitlines() if "stay" in line and "for life" in line)
    assert all(f"`{token}`" in said for token in cut)
    told = next(line for line in summary.findings if "for life" in line)
    assert told.startswith(f"The scan would cut {len(cut)} locked tokens")
    assert len(told) < 400


def test_a_release_locks_what_is_new_and_only_that(released: Path, built: dict[str, Path]) -> None:
    locked = {entry.token: entry.id for entry in read_lock(released).binding.entries}
    assert locked == fixed_ids(built[CORPORA[0]])
    assert release_vocabulary(released, built[CORPORA[1]], "1.1") == len(
        fixed_ids(built[CORPORA[1]]).keys() - locked.keys()
    )
    assert load_vocabulary(released)[1].entries[: len(locked)] == tuple(read_lock(released).entries[: len(locked)])


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        (
            '72 = "register"',
            '300 = "register"',
            r"tokens\.300: 'register' is moved to 300; its id is 72 for life since 1\.0 \(ids\.lock:\d+\); "
            r"give it that id",
        ),
        (
            '72 = "register"',
            '72 = "registar"',
            r"tokens\.72: id 72 is reused for 'registar'; it belongs to 'register' since 1\.0 \(ids\.lock:\d+\); "
            r"choose a free id",
        ),
    ],
)
def test_a_build_that_would_break_the_lock_fails_and_says_what_to_do(
    build: Build, corpora: dict[str, ScanCounts], released: Path, tmp_path: Path, line: str, instead: str, said: str
) -> None:
    path = released / "language" / "keywords.toml"
    assert line in path.read_text()
    path.write_text(path.read_text().replace(line, instead))
    with pytest.raises(VocabularyConfigError, match=said):
        build(tmp_path / "out", counts=corpora[CORPORA[0]], vocabulary_dir=released)
    assert list((tmp_path / "out").iterdir()) == []
