"""`python -m deploy.image`: build the image of Dataflow's workers, or write the list of its Debian packages again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.image.build import BEAM, LOCAL, build_image, write_debian_lock
from schemas.errors import CppmillError


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code: 0, or 2 with a message for what went wrong."""
    options = _parser().parse_args(arguments)
    try:
        if options.what == "lock":
            write_debian_lock()
        else:
            build_image(
                options.context,
                tag=options.tag,
                base=options.base,
                launcher=options.launcher,
                snapshot=options.snapshot,
            )
    except CppmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    build = what.add_parser("build", help="build the image with buildah")
    build.add_argument("context", type=Path, help="the folder that `make dataflow-context` gathers")
    build.add_argument("--tag", required=True, help="the name that the image gets")
    build.add_argument(
        "--base", default=LOCAL, help=f"{LOCAL}: made here ({LOCAL}); {BEAM}: Beam's own; or the name of an image"
    )
    build.add_argument("--launcher", help="the image that has Google's template launcher")
    build.add_argument("--snapshot", action="store_true", help="make the base from Debian's archive of debian.lock")
    what.add_parser("lock", help="write the versions that Debian's archive has now to debian.lock")
    return parser


if __name__ == "__main__":
    sys.exit(main())
