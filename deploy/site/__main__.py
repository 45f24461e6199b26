"""`python -m deploy.site FOLDER`: what `make docs` runs to build the site into a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.site.building import build_site
from schemas.errors import CppmillError


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site and return the exit code: 0, or 2 with a message for what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m deploy.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site goes; it is made anew")
    try:
        build_site(parser.parse_args(arguments).folder)
    except CppmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
