"""A vocabulary of one's own: what it inherits and adds, what it refuses, and that its names hold in a tokenizer."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.digests import sha256_file
from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from tokenizer_build.bands import is_identifier
from tokenizer_build.build import BuildSummary, pattern_split
from tokenizer_build.decisions import Rule, decide
from tokenizer_build.lint import Severity, lint_vocabulary, load_vocabulary
from tokenizer_build.lock import check_built_from, read_lock, release_vocabulary, vocabulary_digest
from tokenizer_build.own import OWN_TOML, Addition, add_tokens, init_vocabulary
from tokenizer_build.vocabulary import Match, Vocabulary, read_vocabulary

Build = Callable[..., BuildSummary]
SHIPPED = Path(__file__).parents[4] / "configs" / "vocab"
WORDS, LINES = pattern_split("cpp-words-1"), pattern_split("cpp-lines-1")
OPTIONS = BuildOptions(vocab_size=12_288)


@pytest.fixture(scope="session")
def names() -> list[str]:
    """200 names of one project that its own text has seldom, so that a scan cuts them."""
    headers = sorted((Path(pa.get_include()) / "arrow" / "compute").rglob("*.h"))
    found = Counter(name for path in headers for name in re.findall(r"\b[A-Z]\w{6,}\b", path.read_text()))
    known = read_vocabulary(SHIPPED).by_token
    rare = sorted(name for name, hits in found.items() if hits < OPTIONS.min_hits and name not in known)
    assert len(rare) > 200
    return rare[:200]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    init_vocabulary(SHIPPED, tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture(scope="session")
def kept(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary with the 200 names; not to be changed."""
    folder = tmp_path_factory.mktemp("kept") / "own"
    init_vocabulary(SHIPPED, folder)
    add_tokens(folder, names, category="arrow", split=WORDS, keep=True)
    return folder


@pytest.fixture(scope="session")
def tokenizer(kept: Path, build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own-tokenizer") / "tokenizer"
    build(folder, vocabulary_dir=kept, options=OPTIONS, is_recorded=True)
    return folder


@pytest.fixture(scope="session")
def loaded(tokenizer: Path) -> cppmill_core.Tokenizer:
    return cppmill_core.Tokenizer.from_dir(tokenizer)


@pytest.fixture(scope="session")
def pinned(tokenizer: Path) -> dict[str, int]:
    """The fixed tokens with their ids."""
    return {row["token"]: row["id"] for row in manifest(tokenizer)["tokens"]}


def manifest(tokenizer: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((tokenizer / "manifest.json").read_bytes())
    return read


def test_it_begins_as_a_copy_of_the_shipped_vocabulary(own: Path, vocabulary: Vocabulary) -> None:
    begun, lock = load_vocabulary(own)
    assert [(t.id, t.token, t.band) for t in begun.tokens] == [(t.id, t.token, t.band) for t in vocabulary.tokens]
    assert begun.to_json() == vocabulary.to_json()
    assert begun.own == frozenset()
    assert lock.by_id.keys() == read_lock(SHIPPED).binding.by_id.keys()
    with pytest.raises(VocabularyConfigError, match="not empty"):
        init_vocabulary(SHIPPED, own)
    with pytest.raises(VocabularyConfigError, match="not made by `cppmill vocab init`"):
        add_tokens(SHIPPED, ["Acme"], category="acme", split=WORDS)


def test_names_get_free_ids_from_the_end_and_keep_them(own: Path, vocabulary: Vocabulary) -> None:
    added = add_tokens(own, ["acme_a", "acme_b", "acme_a"], category="acme", split=WORDS).added
    assert added == {6999: "acme_a", 6998: "acme_b"}
    assert add_tokens(own, ["acme_b", "acme_c"], category="acme", split=WORDS).added == {6997: "acme_c"}
    assert add_tokens(own, ["acme_d"], category="calls", split=WORDS, band="library").added == {4699: "acme_d"}
    read = read_vocabulary(own)
    assert {t.token: t.id for t in read.tokens} == {t.token: t.id for t in vocabulary.tokens} | {
        "acme_a": 6999, "acme_b": 6998, "acme_c": 6997, "acme_d": 4699,
    }  # fmt: skip
    assert read.own == {"acme_a", "acme_b", "acme_c", "acme_d"}
    assert not [found for found in lint_vocabulary(own, WORDS) if found.severity is Severity.ERROR]


def test_a_full_band_is_refused_with_what_would_make_room(own: Path) -> None:
    before = (own / OWN_TOML).read_bytes()
    with pytest.raises(VocabularyConfigError, match=r"the band domain has 294 free ids; .*cut_categories.*library"):
        add_tokens(own, [f"acme_{number}" for number in range(400)], category="acme", split=WORDS)
    assert (own / OWN_TOML).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "acme::Pool",
            [
                "cuts it into 'acme' + '::' + 'Pool'",
                "use a profile with the pattern cpp-lines-1 or cpp-words-2 or cpp-lines-2",
                "or give 'acme' and 'Pool'",
            ],
        ),
        ("acme pool", ["cuts it into 'acme' + ' pool'", "or give 'acme' and 'pool', each of which is one word"]),
        ("TEST(", ["holds the atomic token 'TEST'"]),
    ],
)
def test_a_name_that_cannot_be_one_token_is_refused_with_the_way_out(own: Path, name: str, said: list[str]) -> None:
    before = (own / OWN_TOML).read_bytes()
    with pytest.raises(VocabularyConfigError) as refused:
        add_tokens(own, [name], category="acme", split=WORDS)
    assert [text for text in said if text not in str(refused.value)] == []
    assert (own / OWN_TOML).read_bytes() == before


def test_the_way_out_for_a_qualified_name_is_a_pattern_of_lines(own: Path) -> None:
    added = add_tokens(own, ["acme::Pool"], category="acme", split=LINES, match="qualified").added
    assert added == {6999: "acme::Pool"}


@pytest.mark.parametrize(
    ("name", "match", "said"),
    [
        ("acme::Pool", "ident", 'ident needs an identifier; match = "qualified" counts it'),
        ("acme.pool", "prefix", 'prefix needs an identifier; match = "string" counts it'),
        ("acme::", "qualified", "with :: between them; give it an id under `tokens`, which no scan cuts"),
    ],
)
def test_a_name_that_no_scan_would_find_is_refused_with_the_way_out(
    own: Path, name: str, match: Match, said: str
) -> None:
    before = (own / OWN_TOML).read_bytes()
    with pytest.raises(VocabularyConfigError) as refused:
        add_tokens(own, [name], category="acme", split=LINES, match=match)
    assert str(refused.value).startswith(f'own.toml: candidates[acme]: candidate "{name}" can never be found')
    assert said in str(refused.value)
    assert (own / OWN_TOML).read_bytes() == before


def test_a_build_refuses_a_name_of_ones_own_that_its_pattern_splits(own: Path, build: Build, tmp_path: Path) -> None:
    add_tokens(own, ["acme::Pool"], category="acme", split=LINES, match="qualified", keep=True)
    with pytest.raises(VocabularyConfigError, match="'acme::Pool': the pattern cuts it"):
        build(tmp_path / "words", vocabulary_dir=own, options=OPTIONS)
    superwords = OPTIONS.model_copy(update={"superwords_after": 0.9})
    build(tmp_path / "lines", vocabulary_dir=own, options=superwords)
    loaded = cppmill_core.Tokenizer.from_dir(tmp_path / "lines")
    assert loaded.encode("acme::Pool").to_pylist() == [6999]


def test_keep_alone_saves_names_of_one_project_from_the_scan(kept: Path, names: list[str], terms: pa.Table) -> None:
    found, lock = load_vocabulary(kept)
    decided = {d.token: d for d in decide(found, lock, terms, 1000, OPTIONS) if d.category == "arrow"}
    assert {decided[name].rule for name in names} == {Rule.KEEP}
    assert all(decided[name].kept for name in names)
    without = replace(found, candidates=tuple(replace(candidate, keep=False) for candidate in found.candidates))
    cut = {d.token for d in decide(without, lock, terms, 1000, OPTIONS) if not d.kept}
    assert cut >= set(names)


KEPT = Addition(added={}, newly_kept=("ncclAllReduce",), known=("template",))
UNCHANGED = Addition(added={}, newly_kept=(), known=("ncclAllReduce", "template"))


def test_a_name_that_is_inherited_is_kept_under_its_id(own: Path, terms: pa.Table) -> None:
    given = ["ncclAllReduce", "template", "ncclAllReduce"]
    assert add_tokens(own, given, category="acme", split=WORDS, keep=True) == KEPT
    assert add_tokens(own, given, category="acme", split=WORDS, keep=True) == UNCHANGED
    found, lock = load_vocabulary(own)
    rules = {d.category: d.rule for d in decide(found, lock, terms, 1000, OPTIONS) if d.token == "ncclAllReduce"}
    assert Rule.KEEP in rules.values()
    assert found.own == frozenset()


def test_cut_tokens_and_categories_are_left_out(own: Path, vocabulary: Vocabulary) -> None:
    path = own / OWN_TOML
    text = path.read_text().replace("cut = []", 'cut = ["TEST"]')
    path.write_text(text.replace("cut_categories = []", 'cut_categories = ["nccl"]'))
    nccl = {c.token for c in vocabulary.candidates if c.category == "nccl"}
    left = read_vocabulary(own)
    assert set(vocabulary.by_token) - set(left.by_token) == {"TEST", *nccl}
    assert not nccl & {c.token for c in left.candidates}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cut = []", 'cut = ["TESTS"]', "own.toml: cut = 'TESTS': no such token; did you mean"),
        ("cut = []", 'cut = ["<EOS>"]', "a control token"),
        ("cut_categories = []", 'cut_categories = ["ncl"]', "no such category; did you mean 'nccl'"),
    ],
)
def test_a_cut_of_what_is_not_there_is_refused(own: Path, old: str, new: str, message: str) -> None:
    path = own / OWN_TOML
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(VocabularyConfigError, match=message):
        load_vocabulary(own)


def test_the_digest_is_of_the_content_alone(own: Path) -> None:
    add_tokens(own, ["acme_a"], category="acme", split=WORDS)
    before = vocabulary_digest(read_vocabulary(own))
    (own / OWN_TOML).rename(own / "acme.toml")
    (own / "acme.toml").write_text("# why\n" + (own / "acme.toml").read_text())
    assert vocabulary_digest(read_vocabulary(own)) == before
    add_tokens(own, ["acme_b"], category="acme", split=WORDS)
    assert vocabulary_digest(read_vocabulary(own)) != before


def test_the_vocabulary_travels_in_the_tokenizer(tokenizer: Path, kept: Path) -> None:
    recorded = manifest(tokenizer)["vocabulary"]["digest"]
    assert recorded == sha256_file(tokenizer / "vocabulary.json") == vocabulary_digest(read_vocabulary(kept))
    travelled, lock = load_vocabulary(tokenizer)
    assert travelled.to_json() == read_vocabulary(kept).to_json()
    assert travelled.own == read_vocabulary(kept).own
    assert lock.by_id.keys() == read_lock(kept).by_id.keys()


def test_the_shipped_vocabulary_leaves_no_trace_in_a_tokenizer(small_tokenizer: Path) -> None:
    assert "vocabulary" not in manifest(small_tokenizer)
    assert not (small_tokenizer / "vocabulary.json").exists()


def test_each_name_is_one_id_that_no_release_moves(
    tokenizer: Path, pinned: dict[str, int], kept: Path, names: list[str], own: Path
) -> None:
    tokens = read_vocabulary(kept).by_token
    assert {pinned[name] for name in names} == {tokens[name].id for name in names}
    add_tokens(own, names, category="arrow", split=WORDS, keep=True)
    with pytest.raises(VocabularyConfigError, match="build with --vocab"):
        check_built_from(SHIPPED, tokenizer)
    check_built_from(own, tokenizer)
    assert release_vocabulary(own, tokenizer, "1.0") > 200
    path = own / OWN_TOML
    moved = pinned[names[0]]
    path.write_text(path.read_text().replace(f"{moved} = ", "6750 = "))
    with pytest.raises(VocabularyConfigError, match=f"{names[0]}' is moved to 6750; its id is {moved} for life"):
        load_vocabulary(own)


@given(data=st.data())
def test_a_name_is_its_id_wherever_it_is_a_word(
    data: st.DataObject, loaded: cppmill_core.Tokenizer, pinned: dict[str, int], names: list[str]
) -> None:
    name = data.draw(st.sampled_from(names))
    other = st.text(st.characters(exclude_characters="_", exclude_categories=["Cs"]), max_size=12)
    left, right = (data.draw(other).encode() for _ in range(2))
    word = name.encode()
    if left and is_word_byte(left[-1]):
        left += b" "
    if right and is_word_byte(right[0]):
        right = b";" + right
    assert is_identifier(name)
    assert loaded.encode(word).to_pylist() == [pinned[name]]
    found = loaded.encode(left + word + right)
    assert pinned[name] in found.to_pylist()
    assert loaded.decode(found) == left + word + right


def is_word_byte(byte: int) -> bool:
    return chr(byte).isalnum() or byte == ord("_") or byte >= 128


def test_a_vocabulary_of_ones_own_begins_with_the_published_lines_of_the_lock_alone(tmp_path: Path) -> None:
    init_vocabulary(SHIPPED, tmp_path / "own")
    assert {entry.version for entry in read_lock(SHIPPED).entries} == {"published", "cppmill-1"}
    assert {entry.version for entry in read_lock(tmp_path / "own").entries} == {"published"}


@pytest.mark.parametrize("band", ["domain", "library"])
def test_nothing_is_changed_if_adding_is_stopped(own: Path, monkeypatch: pytest.MonkeyPatch, band: str) -> None:
    def stop(*_: object) -> list[Any]:
        raise KeyboardInterrupt

    before = {path: path.read_bytes() for path in own.rglob("*.toml")}
    with pytest.raises(VocabularyConfigError, match=r"acme::Pool") as refused:
        add_tokens(own, ["acme::Pool"], category="acme", split=WORDS, band=band)
    assert "/vocabulary" not in str(refused.value)
    monkeypatch.setattr("tokenizer_build.own.lint_vocabulary", stop)
    with pytest.raises(KeyboardInterrupt):
        add_tokens(own, ["acme_a"], category="acme", split=WORDS, band=band)
    assert {path: path.read_bytes() for path in own.rglob("*.toml")} == before


def test_what_else_is_in_the_folder_is_left_alone(own: Path) -> None:
    (own / ".#README.md").symlink_to("me@host.123:456")
    os.mkfifo(own / "pipe")
    assert add_tokens(own, ["acme_a"], category="acme", split=WORDS).added
    assert any(own.glob("own*.toml"))


def test_of_names_added_at_once_none_is_lost(own: Path) -> None:
    names = [f"acme_{number}" for number in range(6)]
    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(lambda name: add_tokens(own, [name], category="acme", split=WORDS).added, names))
    assert sorted(name for added in found for name in added.values()) == names
    assert set(names) <= read_vocabulary(own).by_token.keys()
