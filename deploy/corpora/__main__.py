"""`python -m deploy.corpora`: what `make tokenizer` does before and after the build, and prose to compare with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from configs import VOCABULARY
from deploy.corpora.prose import fetch_prose
from deploy.corpora.sources import fetch, write_lock
from deploy.programs import run_program
from schemas.digests import sha256_file
from tokenizer_build.lock import UNRELEASED, read_releases, revision


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code: 0, or 2 with a message for what went wrong."""
    return run_program(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.corpora", description=__doc__)
    what = parser.add_subparsers(required=True)
    fetching = what.add_parser("fetch", help="fetch the training corpora, unless they are there")
    fetching.add_argument("folder", type=Path)
    fetching.add_argument("--latest", action="store_true", help="today's versions instead of those of the lock")
    fetching.add_argument("--pip", default="pip", help="the pip that fetches packages (%(default)s)")
    fetching.set_defaults(do=lambda options: fetch(options.folder, is_latest=options.latest, pip=options.pip))
    locking = what.add_parser("lock", help="write sources.lock of corpora that were fetched")
    locking.add_argument("folder", type=Path)
    locking.add_argument("--moment", required=True, help="when they were fetched, such as 20261123T131000Z")
    locking.set_defaults(do=lambda options: write_lock(options.folder, options.moment))
    prose = what.add_parser("prose", help="fetch documentation of Debian as plain text, unless it is there")
    prose.add_argument("folder", type=Path)
    prose.set_defaults(do=lambda options: fetch_prose(options.folder))
    naming = what.add_parser("released", help="say which release of the vocabulary a tokenizer is")
    naming.add_argument("tokenizer", type=Path)
    naming.set_defaults(do=lambda options: print(released(options.tokenizer)))
    return parser


def released(tokenizer: Path, vocabulary: Path = VOCABULARY) -> str:
    """Return a line that says which release of a vocabulary a tokenizer directory is, if any."""
    digest = sha256_file(tokenizer / "manifest.json")
    found = revision(read_releases(vocabulary), digest)
    is_which = "not a release of the vocabulary" if found == UNRELEASED else f"release {found} of the vocabulary"
    return f"{tokenizer}: tokenizer {digest}, {is_which}"


if __name__ == "__main__":
    sys.exit(main())
