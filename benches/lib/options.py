"""The command-line options that several benchmarks take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Sources = Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="A folder of C++ sources.")]
TrainSources = Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="C++ to train on.")]
HeldOutSources = Annotated[
    Path, typer.Argument(metavar="HELD_OUT", exists=True, file_okay=False, help="C++ to measure on.")
]
JsonRows = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write one JSON object per row there.")
]
JsonAppended = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Append one JSON object per row there.")
]
Rounds = Annotated[int, typer.Option(min=1, help="Runs of each candidate; the median counts.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads; all usable CPUs by default.")]
LimitMegabytes = Annotated[
    int | None, typer.Option("--limit-mb", min=1, help="Take a sample of about this many MB of a larger tree.")
]
TrainMegabytes = Annotated[int, typer.Option("--train-mb", min=1, help="Train on about this many MB, by path.")]
HeldOutMegabytes = Annotated[
    int | None, typer.Option("--held-out-mb", min=1, help="Measure on about this many MB; on all by default.")
]
VocabSize = Annotated[int, typer.Option(min=512, help="Number of ids.")]


def check_json_folder(file: Path | None) -> None:
    """Refuse a file of `--json` whose folder is missing, before anything is measured.

    Raises:
        typer.BadParameter: Naming the folder.
    """
    if file is not None and not file.parent.is_dir():
        raise typer.BadParameter(f"{file.parent} is no folder", param_hint="--json")
