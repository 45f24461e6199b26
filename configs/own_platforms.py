"""Platforms of the user's own: a TOML file of labels and rules, checked and added to those that come with cppmill.

The file has tables as `platforms.toml` does. A table of a new label also has its `id`; a table of a known label adds
evidence to it. New categories are listed in `categories`, so that a typing error is not one:

    categories = ["board"]

    [os.zenos]
    id = 113
    identifiers = ["__ZENOS__", "zen_*"]

    [board.devkit]
    id = 114
    includes = ["devkit/*"]

The vocabulary of such a run keeps the file's tables under `own`, so it can be given in place of the file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import cppmill_core
import rfc8785
from cppmill_core.platforms import PLATFORM_VOCAB

from configs.platforms import KINDS, Platforms, check_evidence, load_platform_rules, published_platforms
from configs.problems import did_you_mean, show
from schemas.digests import parse_json, parse_toml
from schemas.errors import ConfigError

OWN = "own"
"""The key of a vocabulary that has the user's tables."""

CATEGORIES = "categories"
"""The key of the user's file that lists new categories."""

STANDARD = "std"
"""What the rendered comment calls the category `cpp_std`."""

MAX_ID = (1 << 16) - 1
"""The largest id: platform ids are uint16."""

_CATEGORY, _LABEL = re.compile(r"[a-z][a-z0-9_]*"), re.compile(r"[a-z0-9][a-z0-9_+.-]*")
_ANY = re.compile(r".*", re.DOTALL)
_FORMS = {
    "identifiers": (re.compile(r"[A-Za-z_]\w*\*?", re.ASCII), "an identifier, or the beginning of one and a star"),
    "includes": (
        re.compile(r'<[^<>"*\s]+(\*?>|\*)|[^<>"*\s]+\*?'),
        "a header name, or the beginning of one and a star; in <…> it does not match names in quotes",
    ),
    "paths": (re.compile(r"[^/\\*\s]+"), "the name of one folder, or an extension with its dot"),
}
"""The form of each kind of evidence; that of sequences is known to the native core."""

_MATCHLESS = {
    "includes": (re.compile(r"\\"), r"a \ in a document's header name is read as /; write / here"),
    "paths": (re.compile(r"^\..*\."), "an extension begins with the last dot of a name; give it from there on"),
}
"""Entries of a form that is allowed, of which no document has what they look for, and why."""

Tables = Mapping[str, Any]
Categories = Mapping[str, Mapping[str, int]]


def add_platforms(data: bytes, *, where: str) -> Platforms:
    r"""Return the platforms that come with cppmill and those of a file.

    Args:
        data: The file: TOML, or the `platform_vocab.json` of a run that had platforms of its own.
        where: The file, as messages name it.

    Raises:
        ConfigError: The file cannot be read, or an id, name or rule in it cannot be used. The message names the file,
            the key and what to do.

    Example:
        >>> platforms = add_platforms(b'[os.zenos]\nid = 113\nidentifiers = ["__ZENOS__"]', where="mine.toml")
        >>> platforms.size, json.loads(platforms.vocab)["categories"]["os"]["zenos"]
        (114, 113)
    """
    tables = _read(data, where)
    known = parse_json(PLATFORM_VOCAB.read_bytes())
    ids = _add_ids(tables, known["categories"], where)
    size = max(known["size"], *(number + 1 for labels in ids.values() for number in labels.values()))
    rules = rfc8785.dumps(_add_rules(tables, ids, where)).decode()
    if not has_own_platforms(data):  # a run that an earlier version made may have such rules
        _check_matches(tables, where)
    vocab = rfc8785.dumps({**known, "size": size, "categories": ids, OWN: tables})
    return Platforms(vocab=vocab, size=size, own_rules=rules)


def recorded_platforms(vocab: bytes, *, where: str) -> Platforms:
    """Return the platforms of a run from its `platform_vocab.json`.

    Raises:
        ConfigError: If the user's tables in it cannot be used.
    """
    return add_platforms(vocab, where=where) if has_own_platforms(vocab) else published_platforms()


def has_own_platforms(vocab: bytes) -> bool:
    """Return whether the bytes of a `platform_vocab.json` have platforms of the user's own."""
    try:
        found = parse_json(vocab)
    except ValueError:
        return False
    return isinstance(found, dict) and OWN in found


def _read(data: bytes, where: str) -> dict[str, Any]:
    if has_own_platforms(data):
        tables = parse_json(data)[OWN]
    else:
        try:
            tables = parse_toml(data.decode("utf-8"))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{where}: not TOML: {error}") from error
    if not isinstance(tables, dict) or not tables.keys() - {CATEGORIES}:
        raise ConfigError(f"{where}: no platform in it; add a table such as [os.NAME] with an id and evidence")
    return tables


def _labels(tables: Tables) -> Iterator[tuple[str, str, Any]]:
    """Yield category, label and table of each label of the file."""
    for category, labels in tables.items():
        if category != CATEGORIES:
            yield from ((category, label, table) for label, table in labels.items())


def _add_ids(tables: Tables, known: Categories, where: str) -> dict[str, dict[str, int]]:
    """Return the ids of all labels by category, the file's after those that come with cppmill."""
    new = _new_categories(tables, known, where)
    ids = {category: dict(labels) for category, labels in known.items()} | {category: {} for category in new}
    _check_tables(tables, ids, where)
    names = {number: f"{category}.{label}" for category, labels in ids.items() for label, number in labels.items()}
    for category, label, table in _labels(tables):
        place = f"{where}: [{category}.{label}]"
        if not isinstance(table, dict):
            raise ConfigError(f"{place}: {show(table)} is not a table; give an id and lists of {', '.join(KINDS)}")
        if label in known.get(category, {}):
            _check_known(table, place)
        else:
            number = _own_id(label, table, place, names)
            names[number], ids[category][label] = f"{category}.{label}", number
    return ids


def _check_tables(tables: Tables, ids: Categories, where: str) -> None:
    """Check that the file has tables of known and new categories alone."""
    for category, labels in tables.items():
        if category == CATEGORIES:
            continue
        if category not in ids:
            near, new = did_you_mean(category, ids), f'{CATEGORIES} = ["{category}"]'
            raise ConfigError(f"{where}: [{category}]: unknown category{near}; for a new one: {new}")
        if not isinstance(labels, dict):
            raise ConfigError(f"{where}: {category} = {show(labels)}: not allowed; give a table per label")


def _new_categories(tables: Tables, known: Categories, where: str) -> list[str]:
    names = tables.get(CATEGORIES, [])
    if not isinstance(names, list):
        raise ConfigError(f"{where}: {CATEGORIES} = {show(names)}: not allowed; it takes a list of new categories")
    for at, name in enumerate(names):
        place = f"{where}: {CATEGORIES}[{at}] = {show(name)}"
        if not isinstance(name, str) or not _CATEGORY.fullmatch(name) or name == CATEGORIES:
            raise ConfigError(f"{place}: not allowed; a category is lower-case letters, digits and _, as cpp_std")
        if name in (*known, STANDARD, *names[:at]):
            raise ConfigError(f"{place}: there is this category already; leave it out")
        if not tables.get(name):
            raise ConfigError(f"{place}: no label in it; add a table [{name}.NAME], or leave it out")
    return names


def _check_known(table: Tables, place: str) -> None:
    """Check the table of a label that comes with cppmill."""
    if "id" in table:
        raise ConfigError(f"{place} id: the label comes with cppmill and has an id; leave the key out")
    if not table:
        raise ConfigError(f"{place}: nothing is added; give evidence: {', '.join(KINDS)}")


def _own_id(label: str, table: Tables, place: str, names: Mapping[int, str]) -> int:
    """Return the id of a new label; `names` has those that are taken."""
    if not _LABEL.fullmatch(label):
        raise ConfigError(f"{place}: not allowed; a label is lower-case letters, digits and _ + . -, as x64 or c++20")
    free = next(number for number in range(1, MAX_ID + 2) if number not in names)
    number = table.get("id")
    if number is None:
        raise ConfigError(f"{place}: no id; {free} is free")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= MAX_ID:
        raise ConfigError(f"{place} id = {show(number)}: not allowed; it takes a number from {free} to {MAX_ID:,}")
    if number in names:
        raise ConfigError(f"{place} id = {number}: {names[number]} has it; {free} is free")
    if not table.keys() - {"id"}:
        raise ConfigError(f"{place}: no evidence; give some: {', '.join(KINDS)}")
    return number


def _add_rules(tables: Tables, ids: Categories, where: str) -> dict[str, Any]:
    """Return the rules of all labels, the file's after those that come with cppmill."""
    rules: dict[str, Any] = parse_json(load_platform_rules())
    known = {(rule["category"], rule["label"]): rule for rule in rules["labels"]}
    for category, label, table in _labels(tables):
        place = f"{where}: [{category}.{label}]"
        evidence = {kind: entries for kind, entries in table.items() if kind != "id"}
        check_evidence(place, evidence)
        _check_forms(place, category, label, evidence)
        rule = known.get((category, label))
        if rule is None:
            rules["labels"].append({"id": ids[category][label], "category": category, "label": label, **evidence})
        else:
            _extend(rule, evidence, place)
    rules["labels"].sort(key=lambda rule: rule["id"])
    return rules


def _check_forms(place: str, category: str, label: str, evidence: Mapping[str, list[str]]) -> None:
    """Check the form of every entry; the native core knows what sequences of tokens there are."""
    for kind, entries in evidence.items():
        form, words = _FORMS.get(kind, (_ANY, ""))
        for entry in entries:
            if not form.fullmatch(entry):
                raise ConfigError(f"{place} {kind}: {show(entry)} is not allowed; give {words}")
            rule = {"id": 1, "category": category, "label": label, kind: [entry]}
            try:
                cppmill_core.PlatformDetector(json.dumps({"max_ids": 1, "labels": [rule]}))
            except cppmill_core.InvalidInputError as error:
                raise ConfigError(f"{place} {kind}: {error}") from error


def _check_matches(tables: Tables, where: str) -> None:
    """Check that there can be a document that matches each entry of the file, whose form is checked."""
    for category, label, table in _labels(tables):
        for kind, (matchless, reason) in _MATCHLESS.items():
            for entry in filter(matchless.search, table.get(kind, ())):
                raise ConfigError(f"{where}: [{category}.{label}] {kind}: {show(entry)} can match nothing: {reason}")


def _extend(rule: dict[str, Any], evidence: Mapping[str, list[str]], place: str) -> None:
    """Add evidence to the rule of a label that comes with cppmill."""
    for kind, entries in evidence.items():
        for entry in entries:
            if entry in rule.get(kind, []):
                raise ConfigError(f"{place} {kind}: {show(entry)} comes with cppmill; leave it out")
        rule[kind] = [*rule.get(kind, []), *entries]
