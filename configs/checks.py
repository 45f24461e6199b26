"""Whether the options of a run fit together: its patterns, its kind of vocabulary, its filters, its platforms.

Each check takes the merged tables, and the layers that were merged so that messages can name the source of a value.
Values of a wrong type are skipped, because they were reported already. Only the native core knows which patterns exist
and how they cut.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import cppmill_core

from configs.layers import Layer, Tables, place_of
from configs.own_platforms import add_platforms
from configs.places import WILDCARDS
from configs.problems import did_you_mean, first_lines
from schemas.errors import ConfigError, PluginError
from schemas.files import read_regular
from schemas.licenses import canonical_license, license_identifiers
from schemas.options import FILE_DIGEST
from schemas.places import is_remote, missing_package
from schemas.plugins.entry_points import describe_filter, find_filter, find_reader
from schemas.reasons import Filtered

_LINES = {"cpp-words-2": "cpp-lines-2", "text-words-1": "text-sentences-1"}
"""The patterns of the lines that superwords are learned in, by the pattern of words."""

_PATTERN_KEYS = ("pattern", "unit_pattern")

_LEAST_IDS = {"bpe": 7200, "sentencepiece-bpe": 320, "sentencepiece-unigram": 320}
"""The number of ids that are not learned: the ids of the vocabulary files, or control tokens and bytes."""

_BYTES = 256

_ONLY_BPE = ("superwords_after", "max_token_bytes", "hf_template")

_LIBRARIES = {
    "allowed_licenses": ("license_expression", "licenses"),
    "find_licenses": ("licenseclassifier", "licenses"),
    "drop_secrets": ("detect_secrets", "secrets"),
    "near_duplicate_similarity": ("rensa", "near-duplicates"),
}
"""The module that a key needs, and the extra that installs it."""

_ONLY_DIGEST = "a receipt has only a benchmark's digest; name its files again"


def check_patterns(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every pattern that cannot be used, and one if superwords have no lines to be learned in."""
    scan = tables.get("scan", {})
    named = {key: scan[key] for key in _PATTERN_KEYS if isinstance(scan.get(key), str) and scan[key]}
    unknown = [key for key in named if named[key] not in cppmill_core.PATTERNS]
    for key in unknown:
        known = ", ".join(cppmill_core.PATTERNS)
        nearest = did_you_mean(named[key], cppmill_core.PATTERNS)
        yield f"{place_of(layers, 'scan', key)}: unknown pattern{nearest} (known: {known})"
    if "pattern" in named and not unknown:
        yield from _check_together(named, layers)
    if isinstance(tables.get("build", {}).get("superwords_after"), float) and scan.get("unit_pattern") is None:
        lines = _LINES.get(named.get("pattern", ""), "cpp-lines-1")
        yield (
            f"{place_of(layers, 'build', 'superwords_after')}: superwords are learned in lines, and none are counted; "
            f'set unit_pattern = "{lines}" in [scan]'
        )


def check_project_cap(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line if what projects count for is capped, and the words are not counted by project."""
    if tables.get("build", {}).get("project_cap") is not None and not tables.get("scan", {}).get(
        "partition_by_project"
    ):
        yield (
            f"{place_of(layers, 'build', 'project_cap')}: words are not counted by project; set partition_by_project = "
            "true in [scan]"
        )


def _check_together(named: dict[str, str], layers: Sequence[Layer]) -> Iterator[str]:
    """Yield what the scanner says about the patterns."""
    for keys in (("pattern",), _PATTERN_KEYS):
        if keys[-1] not in named:
            return
        try:
            cppmill_core.Scanner(json.dumps({key: named[key] for key in keys}))
        except cppmill_core.InvalidInputError as error:
            yield f"{place_of(layers, 'scan', keys[-1])}: {error}"
            return


def check_build(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every option that the kind of vocabulary does not have, and for a size that is too small."""
    build = tables.get("build", {})
    kind, vocab_size = build.get("kind", "bpe"), build.get("vocab_size")
    if kind not in _LEAST_IDS or tables.get("run", {}).get("tokenizer") is not None:
        return
    specials = build.get("specials")
    least = _LEAST_IDS[kind] if specials is None else _BYTES + len(specials) + (kind != "bpe")
    if isinstance(vocab_size, int) and 0 < vocab_size < least:
        place = place_of(layers, "build", "vocab_size")
        yield f"{place}: not allowed; a vocabulary of the kind {kind} has {least:,} ids before any is learned"
    if specials is not None:
        yield from _check_text(tables, layers)
    if kind != "bpe":
        for key in _ONLY_BPE:
            if build.get(key) not in (None, "none"):
                place = place_of(layers, "build", key)
                yield f"{place}: a vocabulary of the kind {kind} has no such option; leave it out"
        if tables.get("run", {}).get("vocab") is not None:
            place = place_of(layers, "run", "vocab")
            yield f"{place}: a vocabulary of the kind {kind} has no fixed tokens but the control tokens; leave it out"
    else:
        yield from _check_template(tables, layers)


def _check_text(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every option that a vocabulary for text does not have, and for documents that lack an end."""
    for table, key in (("run", "vocab"), ("build", "min_fixed_use")):
        if tables.get(table, {}).get(key) is not None:
            yield f"{place_of(layers, table, key)}: a vocabulary with specials has no other fixed tokens; leave it out"
    specials, policy = tables["build"]["specials"], tables.get("tokenize", {})
    names = {"bos": "<BOS>", "eos": policy.get("eos_token") or tables.get("ingest", {}).get("document_separator")}
    for key, name in names.items():
        if policy.get(key, True) is True and name not in specials and (key == "bos" or "<EOS>" not in specials):
            place = place_of(layers, "build", "specials")
            missing = name or "<EOS>"
            yield f"{place}: none is {missing}, which documents have; add it, or set {key} = false in [tokenize]"


def _check_template(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every token that the template puts around texts and the policy does not put around documents."""
    template, policy = tables.get("build", {}).get("hf_template"), tables.get("tokenize", {})
    for key in ("bos", "eos"):
        if isinstance(template, str) and key in template.split("-") and policy.get(key) is False:
            place = place_of(layers, "build", "hf_template")
            yield f"{place}: documents have no <{key.upper()}>, because {key} = false in [tokenize]"


def check_filters(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every filter that cannot be used as it is asked for."""
    ingest = tables.get("ingest", {})
    asked = {key: value for key, value in ingest.items() if value}
    missing = [key for key in _LIBRARIES if key in asked and _missing(key)]
    for key in missing:
        yield f"{place_of(layers, 'ingest', key)}: {_missing(key)}"
    yield from _first(_check_readers(asked.get("readers"), layers), layers, "readers")
    yield from _check_redaction(ingest, layers)
    if "allowed_licenses" not in missing:
        yield from _check_licenses(asked.get("allowed_licenses"), layers)
    yield from _first(_check_benchmarks(asked.get("decontaminate"), layers), layers, "decontaminate")
    yield from _first(_check_others(asked.get("filters"), layers), layers, "filters")
    yield from _check_withdrawn(asked.get("withdrawn"), layers)
    if "near_duplicate_similarity" in asked and ingest.get("drop_duplicates") is False:
        place = place_of(layers, "ingest", "near_duplicate_similarity")
        yield f"{place}: near-duplicates are found among distinct documents; leave drop_duplicates on"


def _first(lines: Iterator[str], layers: Sequence[Layer], key: str) -> Iterator[str]:
    """Yield the first lines about the entries of a list, and one of how many more there are."""
    yield from first_lines([*lines], str, lambda number: f"{place_of(layers, 'ingest', key)}: {number} more are wrong")


def _missing(key: str) -> str:
    """Return what to say of the library that a key needs; nothing if it is there."""
    module, extra = _LIBRARIES[key]
    if importlib.util.find_spec(module):
        return ""
    return f"needs {module.replace('_', '-')}, which is not installed: pip install 'cppmill[{extra}]'"


def _check_redaction(ingest: Mapping[str, Any], layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line if secrets are to be replaced and cannot be found, or documents with them are to be dropped too."""
    if "secret" not in (ingest.get("redact") or ()):
        return
    if missing := _missing("drop_secrets"):
        yield f"{place_of(layers, 'ingest', 'redact')}: {missing}"
    if ingest.get("drop_secrets"):
        place = place_of(layers, "ingest", "drop_secrets")
        yield f"{place}: redact replaces secrets, so none is left to drop documents for; leave one of them out"


def _check_readers(names: object, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every reader of another distribution that is not there."""
    for index, name in enumerate(names if isinstance(names, tuple) else ()):
        try:
            find_reader(name)
        except (ConfigError, PluginError) as error:
            yield f"{place_of(layers, 'ingest', 'readers', index=index)}: {error}"


def _check_others(filters: object, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every filter of another distribution that is not there or refuses its options."""
    for name, table in filters.items() if isinstance(filters, Mapping) else ():
        place = f"{place_of(layers, 'ingest', 'filters')}: "
        if name in tuple(Filtered):
            yield f"{place}{name!r} is a reason of cppmill's own; its filters are keys of [ingest]"
        elif isinstance(table, Mapping):
            try:
                found = find_filter(name)
                found.record_options(name, table)
                yield from [] if found.version else [f"{place}{describe_filter(name)} has no version"]
            except (ConfigError, PluginError) as error:
                yield f"{place}{error}"


def _check_benchmarks(places: object, layers: Sequence[Layer]) -> Iterator[str]:
    for index, text in enumerate(places if isinstance(places, tuple) else ()):
        if isinstance(text, str) and text and not _may_exist(text):
            reason = _ONLY_DIGEST if text.startswith(FILE_DIGEST) else "no such file or folder"
            yield f"{place_of(layers, 'ingest', 'decontaminate', index=index)}: {reason}"


def _check_withdrawn(file: object, layers: Sequence[Layer]) -> Iterator[str]:
    if isinstance(file, str) and not _may_exist(file):
        yield f"{place_of(layers, 'ingest', 'withdrawn')}: no such file; `cppmill withdraw FILE` makes one"


def check_platforms(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every option of platforms that has no effect, and for a file of them that cannot be used.

    What is behind a URL is read later.
    """
    tokenize = tables.get("tokenize", {})
    if tokenize.get("platform_prefix_form", "labels") != "labels" and not tokenize.get("platform_prefix"):
        place = place_of(layers, "tokenize", "platform_prefix_form")
        yield f"{place}: no line is rendered; set platform_prefix = true, or leave it out"
    yield from _check_own_platforms(tables, layers)


def _check_own_platforms(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    file = tables.get("run", {}).get("platforms")
    if not isinstance(file, str) or not file:
        return
    place = place_of(layers, "run", "platforms")
    if tables.get("ingest", {}).get("detect_platforms") is False:
        yield f"{place}: no platforms are found with detect_platforms = false; leave one of them out"
    if is_remote(file):
        missing = missing_package(file)
        yield from [f"{place}: {missing}"] if missing else []
        return
    try:
        add_platforms(read_regular(Path(file)), where=place)
    except OSError as error:
        yield f"{place}: cannot be read: {error.strerror}"
    except ConfigError as error:
        yield str(error)


def _may_exist(text: str) -> bool:
    """Return whether a place seems to exist; only the file system is asked."""
    is_glob = any(character in text for character in WILDCARDS)
    # Path.expanduser raises for the folder of a user whom there is not
    return is_glob or is_remote(text) or os.path.exists(os.path.expanduser(text))  # noqa: PTH110, PTH111


def _check_licenses(names: object, layers: Sequence[Layer]) -> Iterator[str]:
    place = partial(place_of, layers, "ingest", "allowed_licenses")
    unknown = [
        (index, name)
        for index, name in enumerate(names if isinstance(names, tuple) else ())
        if isinstance(name, str) and name and canonical_license(name) is None
    ]
    yield from first_lines(
        unknown,
        lambda found: f"{place(index=found[0])}: no SPDX identifier{_nearest(found[1])}",
        lambda number: f"{place()}: {number} more are no SPDX identifiers",
    )


def _nearest(name: str) -> str:
    """Return the nearest identifiers as the end of a message."""
    known = {identifier.lower(): identifier for identifier in license_identifiers()}
    near = get_close_matches(name.lower().replace(" ", "-"), known, n=3)
    return (
        f"; did you mean {' or '.join(known[match] for match in near)}?"
        if near
        else ", as https://spdx.org/licenses has"
    )
