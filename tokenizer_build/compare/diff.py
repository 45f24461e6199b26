"""What became of a tokenizer's ids in another one: tokens added, removed, moved, kept, and the map between the ids.

The map is for embedding surgery: a row of the new table is the old row of the same token, or made from the old tokens
that spell a new one. Control tokens and reserved ids are matched by name, or by beginning or ending documents; every
other token by its bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cppmill_core.manifests import BOS, EOS

from schemas.digests import parse_json
from schemas.tables import required
from tokenizer_build.artifact import MANIFEST_JSON
from tokenizer_build.bands import Strength, reserved_name

_FIXED = frozenset({Strength.CONTROL, Strength.PINNED, Strength.ATOMIC})
_ROLES = (BOS, EOS)
_ROWS_AT_ONCE = 1 << 16
_NAMED = frozenset({Strength.CONTROL, Strength.RESERVED})

_OLD_IDS = pa.list_(required("item", pa.uint32()))
ID_MAP = pa.schema(
    [
        required("new_id", pa.uint32()),
        required("token", pa.binary()),
        required("kind", pa.string()),
        pa.field("old_id", pa.uint32()),
        required("old_ids", _OLD_IDS),
    ]
)
"""The map: one row per new id, in order. `old_ids` are the old tokens that spell it; a name has none."""


class Kind(StrEnum):
    """What a new id is to the old tokenizer."""

    SAME = "same"
    MOVED = "moved"
    NEW = "new"
    RESERVED = "reserved"


@dataclass(frozen=True)
class Entry:
    """One id: its bytes (of a control token or reserved id, the name) and what is promised of it."""

    id: int
    token: bytes
    strength: Strength

    @property
    def key(self) -> tuple[bool, bytes]:
        """What makes it the same token in another tokenizer: a name is not text of the same characters."""
        return self.strength in _NAMED, self.token

    @property
    def fixed(self) -> bool:
        """Whether its id is fixed by the vocabulary's files."""
        return self.strength in _FIXED

    def __str__(self) -> str:
        """Return the token as one line of ASCII."""
        return repr(self.token)[1:] if self.strength not in _NAMED else self.token.decode()


@dataclass(frozen=True)
class TokenizerIds:
    """Every id of a tokenizer directory, and its encoder."""

    tokenizer: cppmill_core.AnyTokenizer
    entries: tuple[Entry, ...]
    roles: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def by_role(self) -> dict[str, Entry]:
        """The control tokens that begin and end documents, by what they do: their own name, or the role's."""
        named = {entry.token.decode(): entry for entry in self.entries if entry.strength is Strength.CONTROL}
        own = {name: named[name] for name in _ROLES if name in named}
        return own | {role: self.entries[id_] for id_, role in self.roles.items()}

    def role_of(self, entry: Entry) -> str | None:
        """Return what a control token does, if it begins or ends documents."""
        return next((role for role, other in self.by_role.items() if other.id == entry.id), None)

    @cached_property
    def by_key(self) -> dict[tuple[bool, bytes], Entry]:
        """Each entry by what it is matched by."""
        return {entry.key: entry for entry in self.entries}


def read_ids(directory: Path, tokenizer: cppmill_core.AnyTokenizer) -> TokenizerIds:
    """Read every id of a tokenizer directory."""
    manifest: dict[str, Any] = parse_json((directory / MANIFEST_JSON).read_bytes())
    named = {row["id"]: (row["token"].encode(), Strength(row["strength"])) for row in manifest["tokens"]}
    for first, last in manifest["reserved"]:
        named |= {i: (reserved_name(i).encode(), Strength.RESERVED) for i in range(first, last + 1)}
    learned = ((tokenizer.token_bytes(i) or b"", Strength.LEARNED) for i in range(tokenizer.vocab_size))
    entries = tuple(Entry(i, *named.get(i, token)) for i, token in enumerate(learned))
    return TokenizerIds(tokenizer, entries, {i: role for role, i in manifest.get("roles", {}).items()})


@dataclass(frozen=True)
class VocabularyDiff:
    """Two tokenizers side by side."""

    old: TokenizerIds
    new: TokenizerIds

    @cached_property
    def added(self) -> list[Entry]:
        """Tokens that only the new one has, reserved ids left out."""
        return [e for e in self.new.entries if e.key not in self.old.by_key and e.strength is not Strength.RESERVED]

    @cached_property
    def removed(self) -> list[Entry]:
        """Tokens that only the old one has, reserved ids left out."""
        return [e for e in self.old.entries if e.key not in self.new.by_key and e.strength is not Strength.RESERVED]

    @cached_property
    def common(self) -> list[tuple[Entry, Entry]]:
        """Tokens that both have, old and new, reserved ids left out, by old id."""
        pairs = ((entry, self.new.by_key.get(entry.key)) for entry in self.old.entries)
        return [(e, other) for e, other in pairs if other is not None and e.strength is not Strength.RESERVED]

    @property
    def kept(self) -> list[tuple[Entry, Entry]]:
        """Tokens that have the same id in both."""
        return [pair for pair in self.common if pair[0].id == pair[1].id]

    @property
    def moved(self) -> list[tuple[Entry, Entry]]:
        """Tokens with another id in the new one; a learned token may move."""
        return [pair for pair in self.common if pair[0].id != pair[1].id]

    def counts(self) -> dict[str, int]:
        """Return how many tokens were kept, moved, added and removed."""
        return {name: len(getattr(self, name)) for name in ("kept", "moved", "added", "removed")}

    def broken_promises(self) -> list[str]:
        """Return a line for each fixed id that moved, or that another fixed token has now; there must be none."""
        lines = [
            f"{old}: id {old.id} is {new.id} now, and it is fixed in both"
            for old, new in self.moved
            if old.fixed and new.fixed
        ]
        for old in self.old.entries[: len(self.new.entries)]:
            new = self.new.entries[old.id]
            if old.fixed and new.fixed and old.key != new.key and old.key not in self.new.by_key:
                lines.append(f"{old}: its id {old.id} is that of {new} now, and both are fixed")
        return lines

    def id_map(self) -> pa.Table:
        """Return the map from new ids to old ones (`ID_MAP`)."""
        spelled = self.old.tokenizer.encode_batch([entry.token for entry in self.added])
        spelling = dict(zip((entry.id for entry in self.added), spelled.to_pylist(), strict=True))
        rows = [self._map_row(entry, spelling) for entry in self.new.entries]
        return pa.Table.from_pylist(rows, schema=ID_MAP)

    def _map_row(self, entry: Entry, spelling: Mapping[int, Any]) -> dict[str, Any]:
        old = self.old.by_key.get(entry.key) or self.old.by_role.get(self.new.role_of(entry) or "")
        row = {"new_id": entry.id, "token": entry.token, "old_id": None if old is None else old.id}
        if entry.strength is Strength.RESERVED:
            return row | {"kind": Kind.RESERVED.value, "old_ids": []}
        if old is None:
            return row | {"kind": Kind.NEW.value, "old_ids": [] if entry.strength in _NAMED else spelling[entry.id]}
        kind = Kind.SAME if old.id == entry.id else Kind.MOVED
        return row | {"kind": kind.value, "old_ids": [old.id]}

    def new_ids(self) -> npt.NDArray[np.int64]:
        """Return the new id of each old id, -1 where the token is gone."""
        found = (self.new.by_key.get(entry.key) for entry in self.old.entries)
        return np.array([-1 if entry is None else entry.id for entry in found], np.int64)


def initial_rows(rows: npt.NDArray[Any], id_map: pa.Table) -> npt.NDArray[Any]:
    """Return embeddings for the ids of a new tokenizer, made of those for an old one.

    A token has the mean of the rows of the old tokens that spell it, which is its own row if there was one. A name
    without a row of its own has the mean of all.

    Args:
        rows: Old embeddings, a row per old id, and perhaps more rows behind them.
        id_map: The map (`ID_MAP`).

    Example:
        >>> columns = {"new_id": [0, 1, 2], "token": [b"a", b"ab", b"<PAD>"], "kind": ["moved", "new", "new"]}
        >>> ids = {"old_id": [1, None, None], "old_ids": [[1], [1, 0], []]}
        >>> initial_rows(np.array([[4.0], [2.0]]), pa.table({**columns, **ids}, schema=ID_MAP)).tolist()
        [[2.0], [3.0], [3.0]]
    """
    lists: Any = id_map["old_ids"].combine_chunks()
    lengths, ids = lists.value_lengths().to_numpy().astype(np.int64), lists.flatten().to_numpy()
    sums = np.zeros((len(lists), rows.shape[1]), np.float64)
    for first in range(0, len(ids), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        np.add.at(sums, np.repeat(np.arange(len(lists)), lengths)[part], rows[ids[part]])
    sums[lengths == 0] = rows.mean(axis=0, dtype=np.float64)
    means: npt.NDArray[Any] = (sums / np.maximum(lengths, 1)[:, None]).astype(rows.dtype)
    return means


def diff_directories(old: Path, new: Path) -> VocabularyDiff:
    """Compare two tokenizer directories.

    Raises:
        CoreError, OSError: If one cannot be read.
    """
    return VocabularyDiff(*(read_ids(path, cppmill_core.load_tokenizer(path)) for path in (old, new)))


@dataclass
class Compression:
    """How many bytes and tokens of one project two tokenizers made."""

    num_bytes: int = 0
    old_tokens: int = 0
    new_tokens: int = 0

    def bytes_a_token(self) -> tuple[float, float]:
        """Return bytes per token, old and new."""
        return self.num_bytes / max(self.old_tokens, 1), self.num_bytes / max(self.new_tokens, 1)


def compare_compression(
    documents: Iterable[pa.RecordBatch], diff: VocabularyDiff, *, threads: int = 1
) -> dict[str, Compression]:
    """Encode documents with both tokenizers and count by project, sorted by name.

    Args:
        documents: Columns `project` (string) and `content` (binary); others are ignored.
        diff: The tokenizers.
        threads: Threads of the native core; the counts do not depend on it.
    """
    found: dict[str, Compression] = defaultdict(Compression)
    for batch in documents:
        lengths = [_lengths(ids.tokenizer, batch, threads) for ids in (diff.old, diff.new)]
        sizes: list[Any] = batch["content"].to_pylist()
        for project, content, old, new in zip(batch["project"].to_pylist(), sizes, *lengths, strict=True):
            total = found[str(project)]
            total.num_bytes += len(content)
            total.old_tokens += old
            total.new_tokens += new
    return dict(sorted(found.items()))


def _lengths(tokenizer: cppmill_core.AnyTokenizer, batch: pa.RecordBatch, threads: int) -> list[int]:
    lengths: list[Any] = tokenizer.encode_batch(batch["content"], threads).value_lengths().to_pylist()
    return lengths


def describe_diff(diff: VocabularyDiff, *, shown: int | None = 20) -> list[str]:
    """Return the differences in plain words: a table of numbers, then the tokens.

    Args:
        diff: The tokenizers.
        shown: How many tokens of each kind to name at most, fixed ones apart; None for all.
    """
    groups = {
        "kept": [(old.fixed and new.fixed) for old, new in diff.kept],
        "moved": [(old.fixed and new.fixed) for old, new in diff.moved],
        "added": [entry.fixed for entry in diff.added],
        "removed": [entry.fixed for entry in diff.removed],
    }
    lines = [f"{'tokens':8} {'fixed':>8} {'learned':>8}"]
    lines += [f"{name:8} {sum(fixed):8,} {len(fixed) - sum(fixed):8,}" for name, fixed in groups.items()]
    for name, entries in (("added", diff.added), ("removed", diff.removed)):
        for label, fixed in (("fixed", True), ("learned", False)):
            lines += _named(f"{name}, {label}", [f"{e.id} {e}" for e in entries if e.fixed is fixed], shown)
    return lines + _named("moved", [f"{old.id} to {new.id} {old}" for old, new in diff.moved], shown)


def _named(label: str, tokens: Sequence[str], shown: int | None) -> list[str]:
    if not tokens:
        return []
    rest = [] if shown is None or len(tokens) <= shown else [f"  … and {len(tokens) - shown:,} more"]
    return [f"{label}:", *(f"  {token}" for token in tokens[:shown]), *rest]


def describe_compression(projects: Mapping[str, Compression]) -> list[str]:
    """Return a table of bytes per token before and after, a line per project, then all of them."""
    total = Compression()
    for found in projects.values():
        total.num_bytes += found.num_bytes
        total.old_tokens += found.old_tokens
        total.new_tokens += found.new_tokens
    width = max(len("bytes per token"), *map(len, projects)) if projects else len("bytes per token")
    lines = [f"{'bytes per token':{width}} {'bytes':>15} {'old':>7} {'new':>7} {'change':>8}"]
    for name, found in (*projects.items(), ("all", total)):
        old, new = found.bytes_a_token()
        change = f"{new / old - 1:+.2%}" if old else ""
        lines.append(f"{name:{width}} {found.num_bytes:15,} {old:7.3f} {new:7.3f} {change:>8}")
    return lines
