"""The platform rules: what the file that comes with cppmill holds, and how wrong files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import rfc8785

from configs.platforms import KINDS, PLATFORM_VOCAB, PLATFORMS, load_platform_rules
from schemas.errors import ConfigError


def test_every_label_has_evidence_and_the_id_of_the_vocabulary() -> None:
    vocab = json.loads(PLATFORM_VOCAB.read_text(encoding="utf-8"))
    rules = json.loads(load_platform_rules())
    ids = {(rule["category"], rule["label"]): rule["id"] for rule in rules["labels"]}
    assert ids == {(c, label): number for c, labels in vocab["categories"].items() for label, number in labels.items()}
    assert sorted(ids.values()) == list(range(1, vocab["size"]))
    assert rules["max_ids"] == vocab["max_ids_per_document"]
    assert all(any(rule.get(kind) for kind in KINDS) for rule in rules["labels"])


def test_mingw_is_a_target_and_a_compiler() -> None:
    rules = json.loads(load_platform_rules())["labels"]
    assert {rule["id"]: rule["category"] for rule in rules if rule["label"] == "mingw"} == {24: "os", 102: "compiler"}


def test_rules_are_canonical_json() -> None:
    text = load_platform_rules()
    assert text == rfc8785.dumps(json.loads(text)).decode()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("[os.windows]", "[os.widows]", ["[os.widows]", "unknown label", "did you mean windows?"]),
        ("[gpu.cuda]", "[gpus.cuda]", ["[gpus]", "unknown category", "did you mean gpu?"]),
        ("[os.linux]\nidentifiers", "[os.linux]\nidentifier", ["[os.linux] identifier", "did you mean identifiers?"]),
        ("[os.illumos]", "[os.illumos.x]", ["[os.illumos] x", "unknown key"]),
        ("[os.illumos]\nidentifiers = [", "[os.illumos]\nidentifiers = [1, ", ["[os.illumos] identifiers", "1 is not"]),
        ("[os.illumos]\nidentifiers = [", '[os.illumos]\nidentifiers = [" ", ', ['" " is not allowed']),
        ('"__illumos__"', '"__illumos__", "__illumos__"', ['"__illumos__" is listed twice']),
        ("[os.illumos]\n", '[os.illumos]\nincludes = "x"\n', ["[os.illumos] includes", "list of strings"]),
        ("[os.illumos]", "[os", ["cannot be read", "line"]),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_key(
    tmp_path: Path, before: str, after: str, words: list[str]
) -> None:
    text = PLATFORMS.read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_platform_rules(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)


def test_a_missing_label_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[os.windows]\nidentifiers = ["_WIN32"]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\[os\.linux\]: no evidence"):
        load_platform_rules(path)


def test_a_category_that_is_not_a_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("os = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="os: 1 is not a table"):
        load_platform_rules(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_platform_rules(tmp_path / "none.toml")
