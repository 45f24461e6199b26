"""What the programs `python -m deploy.…` have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from schemas.errors import CppmillError


def run_program(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Do what the arguments say and return the exit code: 0, or 2 with a message for what went wrong.

    Args:
        parser: Its commands set `do`, which takes the options.
        arguments: The arguments; those of the process by default.
    """
    options = parser.parse_args(arguments)
    try:
        options.do(options)
    except CppmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
