"""What lies beside the `tokenizer.json` of a build: what `transformers` reads there, and what it must not find.

`transformers` takes more from a folder than `tokenizer.json`: roles of control tokens, settings, and tokens that it
adds to the vocabulary. A build writes two of these files, with the contents below; anything else could give other ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

CONFIG = "tokenizer_config.json"
ROLES_FILE = "special_tokens_map.json"
ADDED = "added_tokens.json"
"""Tokens with ids that `transformers` adds to the vocabulary of any `tokenizer.json` beside it; no build writes it."""

EXTRA = "additional_special_tokens"
"""Control tokens without a role, where there is a template. `transformers` 5 reads it as `extra_special_tokens`."""

SETTINGS: Mapping[str, Any] = {
    "add_prefix_space": False,
    "backend": "tokenizers",
    "clean_up_tokenization_spaces": False,
    "model_max_length": 10**12,
    "split_special_tokens": True,
    "tokenizer_class": "PreTrainedTokenizerFast",
}
"""What the configuration of a build has besides roles; `split_special_tokens` keeps control text ordinary."""

_ROLES = {"bos_token": "<BOS>", "eos_token": "<EOS>", "pad_token": "<PAD>", "unk_token": "<UNK>"}


def roles_of(names: Iterable[str]) -> dict[str, str]:
    """Return the control tokens that `transformers` is told of; where none has the name, the first ends a text.

    Args:
        names: The control tokens, by id; at least one.

    Example:
        >>> roles_of(["<BOS>", "<FILE>"]), roles_of(["<FILE>"])
        ({'bos_token': '<BOS>'}, {'eos_token': '<FILE>'})
    """
    listed = list(names)
    return {role: name for role, name in _ROLES.items() if name in listed} or {"eos_token": listed[0]}


def find_added(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line if there are added tokens beside a tokenizer of which its manifest says nothing."""
    if (folder / ADDED).exists() and ADDED not in manifest["files"]:
        yield f"{ADDED} is there, whose tokens transformers would add, and no build writes it; remove it"


def find_false(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the two files of a build have that it does not write.

    Args:
        folder: The tokenizer directory.
        manifest: Its manifest.
    """
    control = sorted((token["id"], token["token"]) for token in manifest["tokens"] if token["strength"] == "control")
    names = [name for _, name in control]
    roles = roles_of(names) if names else {}
    for file, expected in ((CONFIG, {**SETTINGS, **roles}), (ROLES_FILE, roles)):
        if file not in manifest["files"]:
            if (folder / file).exists():
                yield f"no digest of {file}, which is there"
            continue
        content = json.loads((folder / file).read_bytes())
        extra = content.pop(EXTRA, ()) if file == CONFIG else ()
        yield from (f"{file}: it has {key!r}, which no build writes" for key in sorted(content.keys() - expected))
        yield from (f"{file}: it lacks {key!r}" for key in sorted(expected.keys() - content))
        for key in sorted(content.keys() & expected):
            if json.dumps(content[key]) != json.dumps(expected[key]):  # for Python, 0 is False
                yield f"{file}: {key} is {content[key]!r}"
        yield from (f"{file}: {name!r} is no control token" for name in extra if name not in names)
