"""The vocabulary of a run: the one that comes with cppmill, or the folder that `--vocab` names.

A tokenizer that is built with the user's own records it: its manifest has the digest, and beside it are
`vocabulary.json` and the locks. So it travels with the tokenizer, and every machine finds the same revision.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from configs import VOCABULARY
from schemas.digests import sha256_file
from schemas.errors import ConfigError
from schemas.options import RunOptions
from schemas.places import is_remote
from tokenizer_build.lock import (
    LOCK_NAME,
    LOCKS,
    RELEASES_NAME,
    UNRELEASED,
    parse_releases,
    revision,
    vocabulary_digest,
)
from tokenizer_build.vocabulary import VOCABULARY_JSON, band_file_paths, read_vocabulary
from transforms.records.receipts import RECEIPT
from transforms.records.versions import follow_current
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import scratch_folder
from transforms.tokens.tokenizer import read_manifest


def local_vocabulary(place: Path | str | None) -> Path:
    """Return the folder of a vocabulary; what a URL names is copied to this machine for as long as the process lives.

    Args:
        place: A path or a URL; None for the vocabulary that comes with cppmill.

    Raises:
        ConfigError: If there is no vocabulary at a URL.
        StoreError: If a store fails, or refuses the credentials.
    """
    if place is None:
        return VOCABULARY
    if not is_remote(str(place)):
        return Path(place)
    source = OutputFolder(follow_current(str(place)))
    names = [name for name in source.files("") if name.endswith((".toml", ".lock")) or name == VOCABULARY_JSON]
    if LOCK_NAME not in names:
        raise ConfigError(f"--vocab {place}: there is no {LOCK_NAME}; give a folder that `cppmill vocab init` made")
    folder = Path(tempfile.mkdtemp(dir=scratch_folder()))
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(source.read_bytes(name))
    return folder


def check_vocabulary(folder: Path, options: RunOptions) -> None:
    """Refuse a vocabulary that breaks its rules, or one of the user's own with a token that the pattern cuts.

    Raises:
        VocabularyConfigError: With a line for each problem.
    """
    from tokenizer_build.build import pattern_split  # what trains is loaded where a tokenizer is built
    from tokenizer_build.lint import check_own_tokens, load_vocabulary

    vocabulary, _ = load_vocabulary(folder)
    check_own_tokens(vocabulary, pattern_split(token_pattern(options)))


def token_pattern(options: RunOptions) -> str:
    """Return the pattern of the tokenizer that these options build: that of lines, if there are superwords."""
    with_superwords = options.build.superwords_after is not None and options.scan.unit_pattern
    return options.scan.unit_pattern if with_superwords and options.scan.unit_pattern else options.scan.pattern


def vocabulary_key(folder: Path, *, is_own: bool) -> dict[str, Any]:
    """Return what the key of a build holds of a vocabulary: what is in it, not what its files are called."""
    if is_own:
        lock = {LOCK_NAME: sha256_file(folder / LOCK_NAME)}
        return {"digest": vocabulary_digest(read_vocabulary(folder)), **lock}
    return {path.name: sha256_file(path) for path in (*band_file_paths(folder), *sorted(folder.glob("*.lock")))}


def recorded_digest(out: OutputFolder) -> str | None:
    """Return the digest of the user's own vocabulary that OUT's tokenizer was built with; None if it was with none."""
    digest: str | None = read_manifest(out).get("vocabulary", {}).get("digest")
    return digest


def find_revision(out: OutputFolder, digest: str, folder: Path) -> str:
    """Return the release of OUT's tokenizer, and keep in OUT what says so.

    The releases that travel with the tokenizer count first. If they do not name it, those of the vocabulary folder do,
    and then go with it from then on.

    Args:
        out: The output folder.
        digest: The tokenizer's digest.
        folder: The vocabulary folder of this command.
    """
    found = travelled_revision(out, digest)
    releases = folder / RELEASES_NAME
    if found != UNRELEASED or not releases.is_file():
        return found
    found = revision(parse_releases(releases.read_bytes(), where=str(releases)), digest)
    if found != UNRELEASED:
        out.remove(RECEIPT)
        for name in LOCKS:
            out.publish_bytes(f"tokenizer/{name}", (folder / name).read_bytes())
    return found


def travelled_revision(out: OutputFolder, digest: str) -> str:
    """Return the release that the files beside OUT's tokenizer name, or `unreleased`."""
    name = f"tokenizer/{RELEASES_NAME}"
    try:
        return revision(parse_releases(out.read_bytes(name), where=out.where(name)), digest)
    except FileNotFoundError:
        return UNRELEASED
