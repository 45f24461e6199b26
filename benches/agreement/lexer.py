"""`python -m benches.agreement.lexer DIR`: the lexer against libclang's tokens, by project, and why they differ.

What `make lexer-agreement` runs.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer

from benches.agreement.causes import ByteClass
from benches.agreement.libclang import Libclang
from benches.agreement.spans import JUDGED, Agreement, compare
from schemas.errors import ExitCode

MAX_DOCUMENT_BYTES = 64 << 20
"""Longer documents are left out, as ingest leaves them out."""

BATCH_FILES = 200
LEAST = 0.999
"""The agreement demanded of each class in total."""

_SHOWN = (*JUDGED, ByteClass.HEADER)

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
_libclang = cache(Libclang)


@app.command(epilog="Exit codes: 0 agreement of 99.9 % on each class, 1 less than that, 2 wrong usage.")
def lexer_agreement(
    corpus: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="A folder with one folder per project.")
    ],
    processes: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 2,
) -> None:
    """Compare the lexer with libclang's tokens on every file of a corpus, byte by byte."""
    total = Agreement()
    print(_line(("project", "files", "left out", "MB", *(f"{name} %" for name in _SHOWN))))
    for project, agreement in measure(corpus, processes=processes):
        print(_row(project, agreement), flush=True)
        total += agreement
    if not total.documents:
        raise typer.BadParameter(f"{corpus} has no files in folders below it", param_hint="DIR")
    print(_row("total", total), *_explained(total), sep="\n")
    if min(map(total.of, JUDGED)) < LEAST:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def measure(corpus: Path, *, processes: int) -> Iterator[tuple[str, Agreement]]:
    """Yield each project with the agreement on its files, in the order of names.

    Args:
        corpus: A folder; the folders in it are projects. Hidden ones are left alone.
        processes: How many processes work.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        results = pool.imap(compare_files, batches(corpus))
        for project, parts in groupby(results, key=itemgetter(0)):
            total = Agreement()
            for _, part in parts:
                total += part
            yield project, total


def batches(corpus: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield the corpus, a project and some of its files, relative to the corpus."""
    for project in sorted(folder for folder in corpus.iterdir() if folder.is_dir() and folder.name[0] != "."):
        files = sorted(file for file in project.rglob("*") if file.is_file() and not file.is_symlink())
        names = [str(file.relative_to(corpus)) for file in files]
        for first in range(0, len(names), BATCH_FILES):
            yield corpus, project.name, names[first : first + BATCH_FILES]


def compare_files(batch: tuple[Path, str, list[str]]) -> tuple[str, Agreement]:
    """Return the project of a batch and the agreement on its files; those that ingest would not keep are left out."""
    corpus, project, names = batch
    result = Agreement()
    for name in names:
        source = (corpus / name).read_bytes()
        if b"\0" in source or len(source) > MAX_DOCUMENT_BYTES:
            result.left_out += 1
        else:
            result += compare(_libclang(), source, name)
    return project, result


def _row(name: str, agreement: Agreement) -> str:
    counts = f"{agreement.documents:,}", f"{agreement.left_out:,}", f"{agreement.num_bytes / 1e6:,.1f}"
    return _line((name, *counts, *(f"{100 * agreement.of(shown):.4f}" for shown in _SHOWN)))


def _line(cells: tuple[str, ...]) -> str:
    return f"{cells[0]:28}{cells[1]:>9}{cells[2]:>10}{cells[3]:>10}" + "".join(f"{cell:>15}" for cell in cells[4:])


def _explained(total: Agreement) -> Iterator[str]:
    largest = sorted(total.differences.items(), key=lambda item: -item[1].num_bytes)
    for cause, difference in largest:
        yield f"\n{cause}: {difference.num_bytes:,} bytes in {difference.places:,} places"
        yield f"  {difference.example}"


if __name__ == "__main__":
    app(prog_name="python -m benches.agreement.lexer")
