"""`python -m deploy.image`: build the image of Dataflow's workers, or write the list of its Debian packages again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.image.build import BEAM, LOCAL, build_image, write_debian_lock
from deploy.programs import run_program


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code: 0, or 2 with a message for what went wrong."""
    return run_program(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description=__doc__)
    what = parser.add_subparsers(required=True)
    build = what.add_parser("build", help="build the image with buildah")
    build.add_argument("context", type=Path, help="the folder that `make dataflow-context` gathers")
    build.add_argument("--tag", required=True, help="the name that the image gets")
    build.add_argument(
        "--base", default=LOCAL, help=f"{LOCAL}: made here ({LOCAL}); {BEAM}: Beam's own; or the name of an image"
    )
    build.add_argument("--launcher", help="the image that has Google's template launcher")
    build.add_argument("--snapshot", action="store_true", help="make the base from Debian's archive of debian.lock")
    build.set_defaults(do=_build)
    lock = what.add_parser("lock", help="write the versions that Debian's archive has now to debian.lock")
    lock.set_defaults(do=lambda _: write_debian_lock())
    return parser


def _build(options: argparse.Namespace) -> None:
    build_image(
        options.context, tag=options.tag, base=options.base, launcher=options.launcher, snapshot=options.snapshot
    )


if __name__ == "__main__":
    sys.exit(main())
