"""The platform vocabulary: the label of each of a document's `platform_ids`.

The vocabulary that comes with cppmill is a file of this package. Every run has the one that it used in
`OUT/platform_vocab.json`, which also has the user's own labels if there are any.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError

PLATFORM_VOCAB: Path = Path(__file__).with_name("platform_vocab.json")
"""The vocabulary that comes with cppmill."""


@dataclass(frozen=True, kw_only=True)
class PlatformVocab:
    """The ids of platforms.

    Attributes:
        padding_id: The id that fills a list of ids up to a fixed length; no label has it.
        size: Number of ids, padding included: the rows of an embedding.
        max_ids_per_document: The most ids that a document has.
        categories: The id of each label, by category.
    """

    padding_id: int
    size: int
    max_ids_per_document: int
    categories: Mapping[str, Mapping[str, int]]

    @cached_property
    def labels(self) -> dict[int, tuple[str, str]]:
        """Category and label of each id, ascending.

        Example:
            >>> platform_vocab().labels[45]
            ('gpu', 'cuda')
        """
        found = {
            number: (category, label) for category, ids in self.categories.items() for label, number in ids.items()
        }
        return dict(sorted(found.items()))


def platform_vocab(path: str | Path = PLATFORM_VOCAB) -> PlatformVocab:
    """Return the platform vocabulary that comes with cppmill, or that of a run.

    Args:
        path: The file: `OUT/platform_vocab.json` for the vocabulary of a run.

    Raises:
        OSError: If there is no such file.
        CorruptDataError: If it is not a platform vocabulary.

    Example:
        >>> vocab = platform_vocab()
        >>> vocab.size, vocab.max_ids_per_document, vocab.categories["os"]["linux"]
        (113, 20, 2)
    """
    return parse_platform_vocab(Path(path).read_bytes(), where=str(path))


def parse_platform_vocab(data: bytes, *, where: str) -> PlatformVocab:
    """Return the vocabulary in the bytes of a `platform_vocab.json`.

    Args:
        data: The bytes.
        where: The file, as messages name it.

    Raises:
        CorruptDataError: If they are not a platform vocabulary.
    """
    try:
        value: dict[str, Any] = json.loads(data)
        vocab = PlatformVocab(**{name: value[name] for name in PlatformVocab.__dataclass_fields__})
        ids = [number for labels in vocab.categories.values() for number in labels.values()]
        numbers = [vocab.padding_id, vocab.size, vocab.max_ids_per_document, *ids]
        if any(type(number) is not int for number in numbers):
            raise TypeError("a number is not whole")
        if len(set(ids)) != len(ids) or not all(0 < number < vocab.size for number in ids):
            raise ValueError(f"an id is there twice, or not in 1-{vocab.size - 1}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptDataError(f"{where}: not a platform vocabulary ({type(error).__name__}: {error})") from error
    return vocab
