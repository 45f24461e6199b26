from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from schemas.digests import sha256_file
from schemas.errors import VocabularyConfigError
from tokenizer_build.layout import plan_slots
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.lock import UNRELEASED, read_lock, read_releases, release_vocabulary, revision

FIRST_RELEASE = "29d88b4ec80b93c87b76b374fd7447a49b724edbe1e78bd85a527b1255b188cd"
"""SHA-256 of the ids and tokens of `cppmill-1`, a line each."""


def write_manifest(folder: Path, tokens: dict[int, str]) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [{"id": i, "token": token} for i, token in tokens.items()]
    (folder / "manifest.json").write_text(json.dumps({"tokens": rows}))
    return folder


def test_the_shipped_lock_binds_builds_to_the_48_published_control_ids(
    vocabulary_copy: Path, published_tokens: dict[int, str]
) -> None:
    bound = {entry.id: entry.token for entry in read_lock(vocabulary_copy).binding.entries}
    assert bound == {i: published_tokens[i] for i in range(48)}


def test_the_first_release_of_cppmill_pins_the_fixed_ids_of_the_ready_tokenizer(
    vocabulary_copy: Path, repository: Path
) -> None:
    pinned = [entry for entry in read_lock(vocabulary_copy).entries if entry.version == "cppmill-1"]
    assert len(pinned) == 4_415
    lines = "".join(f"{entry.id} {entry.token}\n" for entry in pinned)
    assert hashlib.sha256(lines.encode()).hexdigest() == FIRST_RELEASE, "a line of a release is never changed"
    page = (repository / "docs/how-to/vocabulary/ready-tokenizer.md").read_text()
    assert read_releases(vocabulary_copy)["cppmill-1"] in page


def test_a_release_of_cppmill_pins_ids_and_one_of_a_user_binds_builds(tiny_vocabulary: Path, tmp_path: Path) -> None:
    tokenizer = write_manifest(tmp_path / "one", {64: "auto", 65: "const"})
    assert release_vocabulary(tiny_vocabulary, tokenizer, "cppmill-2") == 2
    lock = read_lock(tiny_vocabulary)
    assert lock.by_id.keys() == {0, 64, 65} and lock.binding.by_id.keys() == {0}
    assert release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "two", {64: "auto"}), "1.0") == 1
    lock = read_lock(tiny_vocabulary)
    assert lock.by_id.keys() == {0, 64, 65} and lock.binding.by_id.keys() == {0, 64}
    assert release_vocabulary(tiny_vocabulary, tokenizer, "cppmill-3") == 0


def test_a_pinned_id_is_not_moved_or_reused_either(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + '"xor"\t64\tcppmill-1\n')
    with pytest.raises(VocabularyConfigError, match="id 64 is reused for 'auto'"):
        load_vocabulary(tiny_vocabulary)


def test_a_pinned_id_without_its_token_is_free_for_a_learned_one(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + '"gone"\t66\tcppmill-1\n"lost"\t67\t1.0\n')
    vocabulary, found = load_vocabulary(tiny_vocabulary)
    reserved = plan_slots(vocabulary.tokens, found, 8192).reserved
    assert 67 in reserved and 66 not in reserved


def test_a_vocabulary_of_the_users_own_cannot_take_the_name_of_a_release_of_cppmill(
    tiny_vocabulary: Path, tmp_path: Path
) -> None:
    (tiny_vocabulary / "inherited").mkdir()
    with pytest.raises(VocabularyConfigError, match=r"'cppmill-9': cppmill-… are releases of cppmill"):
        release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto"}), "cppmill-9")


def test_a_release_appends_new_ids_and_leaves_the_old_lines_as_they_are(tiny_vocabulary: Path, tmp_path: Path) -> None:
    before = (tiny_vocabulary / "ids.lock").read_text()
    tokenizer = write_manifest(tmp_path / "one", {0: "<PAD>", 64: "auto"})
    assert release_vocabulary(tiny_vocabulary, tokenizer, "1.0") == 1
    tokenizer = write_manifest(tmp_path / "two", {0: "<PAD>", 64: "auto", 65: 'a"\t\u20ac'})
    assert release_vocabulary(tiny_vocabulary, tokenizer, "1.1") == 1
    assert (tiny_vocabulary / "ids.lock").read_text() == before + '"auto"\t64\t1.0\n"a\\"\\t\\u20ac"\t65\t1.1\n'
    assert read_lock(tiny_vocabulary).by_id[65].token == 'a"\t\u20ac'


def test_the_revision_is_the_release_of_that_very_tokenizer(tiny_vocabulary: Path, tmp_path: Path) -> None:
    tokenizer = write_manifest(tmp_path / "one", {0: "<PAD>", 64: "auto"})
    digest = sha256_file(tokenizer / "manifest.json")
    assert revision(read_releases(tiny_vocabulary), digest) == UNRELEASED
    release_vocabulary(tiny_vocabulary, tokenizer, "1.0")
    assert revision(read_releases(tiny_vocabulary), digest) == "1.0"
    assert revision(read_releases(tiny_vocabulary), "0" * 64) == UNRELEASED


@pytest.mark.parametrize("version", ["1.0", "published", "unreleased", "", "a b", "1\t0"])
def test_a_version_that_is_taken_or_none_is_refused(tiny_vocabulary: Path, tmp_path: Path, version: str) -> None:
    tokenizer = write_manifest(tmp_path / "one", {64: "auto"})
    release_vocabulary(tiny_vocabulary, tokenizer, "1.0")
    with pytest.raises(VocabularyConfigError, match="taken: 1.0"):
        release_vocabulary(tiny_vocabulary, tokenizer, version)


def test_a_tokenizer_that_disagrees_with_the_lock_is_not_released(tiny_vocabulary: Path, tmp_path: Path) -> None:
    before = (tiny_vocabulary / "ids.lock").read_bytes()
    with pytest.raises(VocabularyConfigError, match="'auto' = 0 was locked before: '<PAD>' = 0 at ids.lock:1"):
        release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {0: "auto"}), "1.0")
    assert (tiny_vocabulary / "ids.lock").read_bytes() == before
    assert read_releases(tiny_vocabulary) == {}


def test_an_interrupted_release_can_be_repeated(tiny_vocabulary: Path, tmp_path: Path) -> None:
    tokenizer = write_manifest(tmp_path / "one", {64: "auto"})
    release_vocabulary(tiny_vocabulary, tokenizer, "1.0")
    (tiny_vocabulary / "releases.lock").unlink()
    assert release_vocabulary(tiny_vocabulary, tokenizer, "1.0") == 0
    assert read_releases(tiny_vocabulary) == {"1.0": sha256_file(tokenizer / "manifest.json")}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"auto"\t66\t1.0', ["'auto' is moved to 64", "its id is 66 for life since 1.0", "keywords.toml: tokens.64"]),
        ('"xor"\t64\t1.0', ["id 64 is reused for 'auto'", "belongs to 'xor' since 1.0", "ids.lock:2"]),
    ],
)
def test_a_moved_or_reused_locked_id_is_refused_with_both_places(
    tiny_vocabulary: Path, line: str, said: list[str]
) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + line + "\n")
    with pytest.raises(VocabularyConfigError) as refused:
        load_vocabulary(tiny_vocabulary)
    for part in (*said, "ids.lock:2"):
        assert part in str(refused.value)


def test_a_locked_token_that_people_removed_is_legal(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + '"gone"\t66\t1.0\n')
    assert load_vocabulary(tiny_vocabulary)[1].by_id[66].token == "gone"


@pytest.mark.parametrize(
    "line",
    [
        "auto\t64\t1.0",
        '"auto"\t64',
        '"auto"\tx\t1.0',
        '"auto"\t-64\t1.0',
        '"auto"\t٦٤\t1.0',
        f'"auto"\t{"9" * 5000}\t1.0',
        "7\t64\t1.0",
        '"<PAD>"\t5\t1.0',
    ],
    ids=range(8),
)
def test_a_damaged_lock_is_refused_with_its_line(tiny_vocabulary: Path, line: str) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text() + line + "\n")
    with pytest.raises(VocabularyConfigError, match="ids.lock:2") as refused:
        read_lock(tiny_vocabulary)
    assert len(str(refused.value)) < 500


def test_a_damaged_line_of_releases_is_refused(tiny_vocabulary: Path) -> None:
    (tiny_vocabulary / "releases.lock").write_text("1.0\n")
    with pytest.raises(VocabularyConfigError, match="not a version and a digest"):
        read_releases(tiny_vocabulary)


def test_a_missing_lock_is_refused(tiny_vocabulary: Path) -> None:
    (tiny_vocabulary / "ids.lock").unlink()
    with pytest.raises(VocabularyConfigError, match="without it ids could move"):
        load_vocabulary(tiny_vocabulary)


def test_releases_at_once_lock_each_id_once(tiny_vocabulary: Path, tmp_path: Path) -> None:
    tokenizers = [write_manifest(tmp_path / str(i), {64: "auto", 65 + i: f"word{i}"}) for i in range(8)]
    release = partial(release_vocabulary, tiny_vocabulary)
    with ThreadPoolExecutor(8) as threads:
        added = list(threads.map(release, tokenizers, [f"1.{i}" for i in range(8)]))
    assert sorted(added) == [1] * 7 + [2]
    assert read_lock(tiny_vocabulary).by_id.keys() == {0, 64, *range(65, 73)}
    assert len(read_releases(tiny_vocabulary)) == 8


@pytest.mark.parametrize(("band", "id_"), [("library", 9000), ("learned", 9000), ("gone", 64)])
def test_a_token_that_is_not_in_a_band_of_fixed_ones_is_not_released(
    band: str, id_: int, tiny_vocabulary: Path, tmp_path: Path
) -> None:
    tokenizer = write_manifest(tmp_path / "one", {64: "auto"})
    manifest = json.loads((tokenizer / "manifest.json").read_bytes())
    bands = [("keywords", 64, 319, "pinned"), ("library", 1500, 4699, "pinned"), ("learned", 7200, 16383, "learned")]
    manifest["bands"] = [dict(zip(("name", "first", "last", "strength"), row, strict=True)) for row in bands]
    manifest["tokens"] = [{"id": id_, "token": "float128", "band": band}]
    (tokenizer / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(VocabularyConfigError, match=rf"'float128' has id {id_}, which is not in the band '{band}'"):
        release_vocabulary(tiny_vocabulary, tokenizer, "1.0")


@pytest.mark.parametrize(
    "line",
    [
        '"new"\t-5\t1.0',
        '"new"\t6_4\t1.0',
        '"new"\t 66 \t1.0',
        '"new"\t٦٦\t1.0',
        f'"new"\t{"9" * 5000}\t1.0',
        '"new"\t66\t\x1b[2J',
        f'"new"\t66\t{"[" * 5000}',
        f'"new"\t66\t{"1" * 5000}',
        '"\\ud800"\t66\t1.0',
    ],
)
def test_an_id_or_a_version_in_another_form_is_refused_in_one_short_line(tiny_vocabulary: Path, line: str) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(f"{lock.read_text()}{line}\n")
    with pytest.raises(VocabularyConfigError, match=r"^ids\.lock:2: .*restore it from version control$") as refused:
        read_lock(tiny_vocabulary)
    assert len(str(refused.value)) < 400


def test_a_lock_that_is_not_utf8_is_refused(tiny_vocabulary: Path) -> None:
    lock = tiny_vocabulary / "ids.lock"
    lock.write_bytes(lock.read_bytes() + b"\xff\n")
    with pytest.raises(VocabularyConfigError, match=r"ids\.lock: byte \d+ is not UTF-8; restore it"):
        read_lock(tiny_vocabulary)


def test_a_line_of_a_release_that_there_was_none_of_keeps_a_release_from_being_made(
    tiny_vocabulary: Path, tmp_path: Path
) -> None:
    tokenizer = write_manifest(tmp_path / "one", {64: "auto"})
    release_vocabulary(tiny_vocabulary, tokenizer, "1.0")
    lock = tiny_vocabulary / "ids.lock"
    lock.write_text(lock.read_text().replace("\t1.0\n", "\tcppmill-1\n"))  # it would no longer bind builds
    releases = tiny_vocabulary / "releases.lock"  # as an earlier version of cppmill wrote it
    releases.write_text("".join(line for line in releases.read_text().splitlines(True) if not line.startswith("#")))
    with pytest.raises(VocabularyConfigError, match=r"'auto' is of 'cppmill-1', which releases\.lock does not name"):
        release_vocabulary(tiny_vocabulary, tokenizer, "2.0")


def test_what_is_not_a_file_in_the_place_of_the_releases_is_named(tiny_vocabulary: Path) -> None:
    os.mkfifo(tiny_vocabulary / "releases.lock")
    with pytest.raises(VocabularyConfigError, match=r"releases\.lock: not a file"):
        read_releases(tiny_vocabulary)


@pytest.mark.parametrize(
    "lines", ["\x1b[2J\t" + "0" * 64, "1.0\tabc", "1.0", f"1.0\t{'0' * 64}\n1.0\t{'1' * 64}", f"1.0\t{'v' * 5000}"]
)
def test_releases_in_another_form_are_refused_in_one_short_line(tiny_vocabulary: Path, lines: str) -> None:
    (tiny_vocabulary / "releases.lock").write_text(f"{lines}\n")
    with pytest.raises(VocabularyConfigError, match=r"releases\.lock: .*restore it from version control$") as refused:
        read_releases(tiny_vocabulary)
    assert len(str(refused.value)) < 400


def test_a_release_after_a_last_line_without_an_end_has_lines_of_its_own(tiny_vocabulary: Path, tmp_path: Path) -> None:
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto"}), "1.0")
    for name in ("ids.lock", "releases.lock"):
        path = tiny_vocabulary / name
        path.write_text(path.read_text().removesuffix("\n"))
    assert release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "two", {64: "auto", 65: "const"}), "2.0") == 1
    assert read_lock(tiny_vocabulary).by_id.keys() == {0, 64, 65}
    assert list(read_releases(tiny_vocabulary)) == ["1.0", "2.0"]


DAMAGE = {
    "the last line": lambda lines: lines[:-1],
    "a line": lambda lines: lines[:1] + lines[2:],
    "all lines": lambda lines: lines[:1],
    "two lines exchanged": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "an id": lambda lines: [*lines[:-1], lines[-1].replace("\t70\t", "\t71\t")],
    "a version": lambda lines: [*lines[:-1], lines[-1].replace("\t2.0", "\t1.0")],
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_what_a_release_left_is_held(tiny_vocabulary: Path, tmp_path: Path, change: Callable[..., list[str]]) -> None:
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto", 65: "const"}), "1.0")
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "two", {64: "auto", 70: "goto"}), "2.0")
    lock = tiny_vocabulary / "ids.lock"
    lines = ["# a comment", *lock.read_text().splitlines()]
    lock.write_text("\r\n".join(lines))
    assert read_lock(tiny_vocabulary).by_id.keys() == {0, 64, 65, 70}
    lock.write_text("\n".join(change(lines)))
    said = r"ids\.lock: its first [34] lines, or those of releases\.lock, .* the release [12]\.0"
    with pytest.raises(VocabularyConfigError, match=said):
        read_lock(tiny_vocabulary)


@pytest.mark.parametrize("change", ["exchanged", "renamed", "dropped"])
def test_releases_are_held_too(tiny_vocabulary: Path, tmp_path: Path, change: str) -> None:
    for version, name in (("1.0", "auto"), ("1.1", "auto"), ("2.0", "const")):
        release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / version, {64 + (name != "auto"): name}), version)
    releases = tiny_vocabulary / "releases.lock"
    lines = releases.read_text().splitlines()
    digests = [line.partition("\t")[2] for line in lines]
    lines = {
        "exchanged": [f"1.0\t{digests[4]}", *lines[1:4], f"2.0\t{digests[0]}", lines[5]],
        "renamed": [*lines[:4], lines[4].replace("2.0", "2.1"), lines[5]],
        "dropped": [*lines[:2], *lines[4:]],
    }[change]
    releases.write_text("\n".join(lines))
    with pytest.raises(VocabularyConfigError, match=r"releases\.lock.*; restore both"):
        read_lock(tiny_vocabulary)


def test_a_release_that_was_interrupted_between_the_two_files_is_repeated(
    tiny_vocabulary: Path, tmp_path: Path
) -> None:
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto"}), "1.0")
    before = (tiny_vocabulary / "releases.lock").read_bytes()
    two = write_manifest(tmp_path / "two", {64: "auto", 65: "const"})
    release_vocabulary(tiny_vocabulary, two, "2.0")
    after = (tiny_vocabulary / "releases.lock").read_bytes()
    (tiny_vocabulary / "releases.lock").write_bytes(before)
    assert release_vocabulary(tiny_vocabulary, two, "2.0") == 0
    assert (tiny_vocabulary / "releases.lock").read_bytes() == after


def test_a_line_that_only_claims_to_be_of_an_interrupted_release_is_refused(
    tiny_vocabulary: Path, tmp_path: Path
) -> None:
    lock, two = tiny_vocabulary / "ids.lock", write_manifest(tmp_path / "two", {64: "auto", 65: "const"})
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto"}), "1.0")
    lock.write_text(f'{lock.read_text()}"gone"\t66\t2.0\n')
    before = (tiny_vocabulary / "releases.lock").read_bytes()
    with pytest.raises(
        VocabularyConfigError, match="'gone' = 66 is of '2.0', and no fixed token of .*two; release the"
    ):
        release_vocabulary(tiny_vocabulary, two, "2.0")
    assert (tiny_vocabulary / "releases.lock").read_bytes() == before


RELEASES = {
    "the comment of the last": lambda lines: lines[:-1],
    "the comment of the first, behind that of the last": lambda lines: [lines[0], lines[2], lines[3], lines[1]],
    "the releases exchanged": lambda lines: lines[2:] + lines[:2],
    "another version in a comment": lambda lines: [*lines[:-1], lines[-1].replace("after 2.0", "after 1.0")],
    "a comment twice": lambda lines: [*lines, lines[-1]],
    "comments of another form": lambda lines: [line.replace("SHA-256", "SHA-1") for line in lines],
}


@pytest.mark.parametrize("change", RELEASES.values(), ids=RELEASES)
def test_each_release_has_the_comment_that_it_left(
    tiny_vocabulary: Path, tmp_path: Path, change: Callable[..., list[str]]
) -> None:
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto"}), "1.0")
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "two", {64: "auto", 65: "const"}), "2.0")
    releases = tiny_vocabulary / "releases.lock"
    lines = releases.read_text().splitlines()
    releases.write_text("\n".join(change(lines)))
    with pytest.raises(VocabularyConfigError, match=r"releases\.lock.*; restore both ids\.lock and releases\.lock"):
        read_lock(tiny_vocabulary)


@pytest.mark.parametrize("version", ["1.0", "published"])
def test_a_lock_gets_no_lines_of_what_was_released(tiny_vocabulary: Path, tmp_path: Path, version: str) -> None:
    release_vocabulary(tiny_vocabulary, write_manifest(tmp_path / "one", {64: "auto"}), "1.0")
    with (tiny_vocabulary / "ids.lock").open("a") as lock:
        lock.write(f'"more"\t70\t{version}\n')
    with pytest.raises(VocabularyConfigError, match=f"it has got lines of {version} since"):
        read_lock(tiny_vocabulary)


def test_a_locked_id_is_in_a_band(tiny_vocabulary: Path) -> None:
    with (tiny_vocabulary / "ids.lock").open("a") as lock:
        lock.write('"more"\t99999\tpublished\n')
    with pytest.raises(VocabularyConfigError, match="'more' has id 99999, which is in no band"):
        load_vocabulary(tiny_vocabulary)
