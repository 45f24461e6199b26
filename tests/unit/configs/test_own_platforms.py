"""Platforms of the user's own: added to those that come with cppmill, and refused by name where they cannot be used."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core.platforms import PLATFORM_VOCAB

from configs.own_platforms import add_platforms, recorded_platforms
from configs.platforms import load_platform_rules, published_platforms
from configs.runs import RunConfig, load_run_config
from schemas.errors import ConfigError
from schemas.tables import MAX_PLATFORM_IDS, PLATFORM_VOCAB_SIZE

GOOD = """
categories = ["board"]

[os.zenos]
id = 113
identifiers = ["__ZENOS__", "zen_*"]

[os.linux]
identifiers = ["__OURLINUX__"]

[board.devkit]
id = 120
paths = ["devkit", ".dk"]
includes = ["devkit/*", "<dk.h>"]
sequences = ["dk_open(@number"]
"""


def add(text: str) -> str:
    """Return what is said of a file, empty if it can be used."""
    try:
        add_platforms(text.encode(), where="mine.toml")
    except ConfigError as error:
        return str(error)
    return ""


def test_the_constants_are_those_of_the_vocabulary() -> None:
    vocab = cppmill_core.platform_vocab()
    assert (vocab.size, vocab.max_ids_per_document) == (PLATFORM_VOCAB_SIZE, MAX_PLATFORM_IDS)
    assert len(vocab.labels) == vocab.size - 1


def test_without_a_file_vocabulary_and_rules_are_those_that_come_with_cppmill() -> None:
    platforms = published_platforms()
    assert platforms.vocab == PLATFORM_VOCAB.read_bytes()
    assert (platforms.size, platforms.rules, platforms.is_own) == (PLATFORM_VOCAB_SIZE, load_platform_rules(), False)
    assert platforms.digest == sha256(platforms.vocab).hexdigest()


def test_labels_are_added_behind_the_known_ones_and_evidence_to_these() -> None:
    platforms = add_platforms(GOOD.encode(), where="mine.toml")
    before, after = (json.loads(rules)["labels"] for rules in (load_platform_rules(), platforms.rules))
    known = {rule["id"]: rule for rule in after}
    assert [rule["id"] for rule in after] == [*range(1, PLATFORM_VOCAB_SIZE), 113, 120]
    for rule in before:
        if rule["label"] == "linux":
            rule["identifiers"].append("__OURLINUX__")
        assert known[rule["id"]] == rule
    assert known[113]["identifiers"] == ["__ZENOS__", "zen_*"]
    assert (known[120]["category"], known[120]["paths"]) == ("board", ["devkit", ".dk"])


def test_the_vocabulary_has_all_labels_and_the_largest_id_gives_its_size(tmp_path: Path) -> None:
    platforms = add_platforms(GOOD.encode(), where="mine.toml")
    (tmp_path / "platform_vocab.json").write_bytes(platforms.vocab)
    vocab = cppmill_core.platform_vocab(tmp_path / "platform_vocab.json")
    published = cppmill_core.platform_vocab()
    assert vocab.size == platforms.size == 121
    assert vocab.labels == {**published.labels, 113: ("os", "zenos"), 120: ("board", "devkit")}


def test_the_vocabulary_can_be_given_in_place_of_the_file() -> None:
    platforms = add_platforms(GOOD.encode(), where="mine.toml")
    assert add_platforms(platforms.vocab, where="platform_vocab.json") == platforms
    assert recorded_platforms(platforms.vocab, where="out") == platforms
    assert recorded_platforms(PLATFORM_VOCAB.read_bytes(), where="out") == published_platforms()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mine.toml: no platform in it"),
        ("[os", "mine.toml: not TOML: "),
        ("os = 1", "mine.toml: os = 1: not allowed; give a table per label"),
        ("[os]\nzenos = 1", "[os.zenos]: 1 is not a table"),
        ("[os.zenos]\nidentifiers = ['a']", "[os.zenos]: no id; 113 is free"),
        ("[os.zenos]\nid = 113", "[os.zenos]: no evidence; give some: identifiers, includes, paths, sequences"),
        ("[os.zenos]\nid = 12\npaths = ['a']", "[os.zenos] id = 12: os.illumos has it; 113 is free"),
        ("[os.a]\nid = 113\npaths = ['a']\n[gpu.b]\nid = 113\npaths = ['b']", "[gpu.b] id = 113: os.a has it; 114 is"),
        ("[os.zenos]\nid = 65536\npaths = ['a']", "id = 65536: not allowed; it takes a number from 113 to 65,535"),
        ("[os.zenos]\nid = 0\npaths = ['a']", "id = 0: not allowed"),
        ("[os.zenos]\nid = true\npaths = ['a']", "id = true: not allowed"),
        ("[os.Zen_OS]\nid = 113\npaths = ['a']", "[os.Zen_OS]: not allowed; a label is lower-case"),
        ("[os.'a b']\nid = 113\npaths = ['a']", "[os.a b]: not allowed; a label is lower-case"),
        (
            "[oss.zenos]\nid = 113\npaths = ['a']",
            "[oss]: unknown category; did you mean os?; for a new one: categories",
        ),
        ("[os.linux]\nid = 2\npaths = ['a']", "[os.linux] id: the label comes with cppmill"),
        ("[os.linux]", "[os.linux]: nothing is added"),
        ("[os.linux]\npaths = ['linux']", '[os.linux] paths: "linux" comes with cppmill; leave it out'),
        ("categories = 'board'\n[os.a]\nid = 113\npaths = ['a']", 'categories = "board": not allowed; it takes a list'),
        ("categories = ['A']\n[A.a]\nid = 113\npaths = ['a']", 'categories[0] = "A": not allowed'),
        ("categories = ['gpu']\n[gpu.a]\nid = 113\npaths = ['a']", 'categories[0] = "gpu": there is this category'),
        ("categories = ['std']\n[std.a]\nid = 113\npaths = ['a']", 'categories[0] = "std": there is this category'),
        ("categories = ['board']\n[os.a]\nid = 113\npaths = ['a']", 'categories[0] = "board": no label in it'),
        ("[os.a]\nid = 113\nidentifier = ['a']", "[os.a] identifier: unknown key; did you mean identifiers?"),
        ("[os.a]\nid = 113\npaths = 'a'", '[os.a] paths: "a" is not allowed; it takes a list of strings'),
        ("[os.a]\nid = 113\npaths = ['a', 'a']", '[os.a] paths: "a" is listed twice'),
        ("[os.a]\nid = 113\npaths = ['a/b']", '[os.a] paths: "a/b" is not allowed; give the name of one folder'),
        ("[os.a]\nid = 113\nidentifiers = ['a*b']", '[os.a] identifiers: "a*b" is not allowed; give an identifier'),
        ("[os.a]\nid = 113\nincludes = ['a.h>']", '[os.a] includes: "a.h>" is not allowed; give a header name'),
        ("[os.a]\nid = 113\nsequences = ['@name x']", '[os.a] sequences: sequence "@name x" cannot be matched: begin'),
        (f"[os.a]\nid = 113\nidentifiers = ['{65 * 'a'}']", "[os.a] identifiers: platform rules: os.a: "),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_key_and_what_to_do(text: str, said: str) -> None:
    assert said in add(text)
    assert add(text).startswith("mine.toml: ")


def matches(kind: str, entry: str) -> bool:
    """Return whether an entry matches a document that has it wherever it could count."""
    label = {"id": 1, "category": "os", "label": "zenos", kind: [entry]}
    detector = cppmill_core.PlatformDetector(json.dumps({"max_ids": 1, "labels": [label]}))
    header = entry.strip("<>*")
    content = f'#include "{header}"\n#include <{header}>\n'.encode()
    documents = pa.record_batch(
        {"path": [f"src/{entry}/a.cpp", f"src/a{entry}"], "content": pa.array([content] * 2, pa.binary())}
    )
    return any(detector.detect(documents, threads=1).column("platform_ids").to_pylist())


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        *[("includes", entry) for entry in (r"npu9\q.h", r"<npu9\q.h>", r"npu9\*", r"<npu9\*")],
        *[("paths", entry) for entry in (".tar.gz", "..", ".a.")],
    ],
)
def test_an_entry_that_can_match_nothing_is_refused_but_in_the_vocabulary_of_a_run(kind: str, entry: str) -> None:
    assert not matches(kind, entry)
    said = add(f"[os.zenos]\nid = 113\n{kind} = ['{entry}']")
    assert said.startswith(f"mine.toml: [os.zenos] {kind}: {json.dumps(entry)} can match nothing: ")
    tables = {"os": {"zenos": {"id": 113, kind: [entry]}}}
    vocab = add_platforms(json.dumps({"own": tables}).encode(), where="platform_vocab.json").vocab
    assert recorded_platforms(vocab, where="out").vocab == vocab


@pytest.mark.parametrize(
    ("kind", "entry"),
    [("includes", "npu9/q.h"), ("includes", "<../q.h>"), ("paths", "."), ("paths", "v1.2"), ("paths", "a..")],
)
def test_an_entry_that_is_like_one_of_these_and_can_match_is_not_refused(kind: str, entry: str) -> None:
    assert matches(kind, entry)
    assert add(f"[os.zenos]\nid = 113\n{kind} = ['{entry}']") == ""


def test_a_file_that_can_be_used_is_not_refused() -> None:
    assert add(GOOD) == ""


def load(tmp_path: Path, text: str, *, tables: str = "") -> RunConfig:
    (tmp_path / "mine.toml").write_text(text)
    (tmp_path / "run.toml").write_text(f'[run]\nplatforms = "{tmp_path}/mine.toml"\n{tables}')
    return load_run_config(file=tmp_path / "run.toml", flags={"--out": str(tmp_path / "out")})


def test_the_file_is_checked_with_the_configuration(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).platforms == tmp_path / "mine.toml"
    with pytest.raises(ConfigError, match=r"run\.platforms = .*: \[os\.a\]: no id; 113 is free"):
        load(tmp_path, "[os.a]\npaths = ['a']")
    with pytest.raises(ConfigError, match=r"--platforms nothing\.toml: cannot be read: No such file"):
        load_run_config(flags={"--out": str(tmp_path / "out"), "--platforms": "nothing.toml"})


def test_a_file_and_a_form_without_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no platforms are found with detect_platforms = false"):
        load(tmp_path, GOOD, tables="[ingest]\ndetect_platforms = false\n")
    form = '[tokenize]\nplatform_prefix_form = "categories"\n'
    with pytest.raises(ConfigError, match="no line is rendered; set platform_prefix = true"):
        load(tmp_path, GOOD, tables=form)
    assert load(tmp_path, GOOD, tables=f"{form}platform_prefix = true\n").options.tokenize.platform_prefix


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    flags = {"SOURCE": (str(tmp_path),), "--out": str(tmp_path / "out"), "--platforms": str(tmp_path / "pipe")}
    with pytest.raises(ConfigError, match="pipe: cannot be read: a pipe or a device, not a file"):
        load_run_config(flags=flags)


@pytest.mark.parametrize("data", [b'["own"]', b'"own"', b"[1, 2]"])
def test_a_json_value_that_is_no_vocabulary_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^mine\.toml: "):
        add_platforms(data, where="mine.toml")
