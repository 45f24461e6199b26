"""What a field of an options model says about its flag. Everything else follows from the field itself.

A field is the only declaration of an option: its name is the key of the TOML file, its type and bounds are the check,
the first paragraph of its docstring is the help, its default is the default. `configs.flags` makes flags of that.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Option:
    """Mark a field that has a flag. A field without the mark is set in a TOML file or with `--set`.

    Attributes:
        heading: The heading under which `--help` lists it; empty for those that come first.
        flag: The flag, `--key` by default, and `--key/--no-key` for true or false. `SOURCE` is for arguments and `--`
            for what follows it.
        metavar: The name of the value in `--help`; by default the type gives it.
        default: What `--help` shows as the default, where the field's own value says too little; the value takes the
            place of `{}`.
        places: Whether the value names files or folders, which a job on another machine takes as URLs.
    """

    heading: str = ""
    flag: str = ""
    metavar: str = ""
    default: str = "{}"
    places: bool = False


ARGUMENTS = "SOURCE"
"""The flag of a field that takes the arguments."""

BEAM_OPTIONS = "--"
"""The flag of a field that takes what follows `--`."""

EXECUTION = Option(heading="Execution")
READING = Option(heading="Reading sources")
FILTER = Option(heading="Filters")
VOCABULARY = Option(heading="Vocabulary")
TOKENS = Option(heading="Tokens")
