"""Whole runs on sources of unusual shapes, of real text: very many, very small, very large, very nested.

    python -m benches.speed.shapes CORPUS --tokenizer DIR [--scale 1.0] [--json FILE]

The text is that of the files of CORPUS, in the order of their paths, cut into pieces.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Optional

import typer

from benches.lib.process_tree import run_measured
from benches.lib.session import bench_session, keep_rows
from pipelines.console.progress import MEGABYTE
from schemas.options import DEFAULT_EXTENSIONS

SMALL_BYTES, FILE_BYTES = 20, 1_000
MEMBERS = 20
LARGE_BYTES = 300 * MEGABYTE


@dataclass(frozen=True)
class Measured:
    """A run: what of, how long, how much of the processors, and the most memory that its processes had."""

    shape: str
    seconds: float
    processor_seconds: float
    peak_bytes: int


def pieces(corpus: Path, num_bytes: int) -> Iterator[bytes]:
    """Yield the text of a folder in pieces of a size, over and over."""
    files = [path for path in sorted(corpus.rglob("*")) if path.suffix[1:] in DEFAULT_EXTENSIONS and path.is_file()]
    held = b""
    while files:
        for path in files:
            held += path.read_bytes().replace(b"\0", b"")  # with a NUL byte it would be dropped as binary
            whole = len(held) // num_bytes * num_bytes
            yield from (held[at : at + num_bytes] for at in range(0, whole, num_bytes))
            held = held[whole:]


def write_lines(corpus: Path, place: Path, scale: float) -> None:
    """Write a million documents of 20 bytes into one JSONL file."""
    with (place / "lines.jsonl").open("w", encoding="utf-8") as file:
        for text in islice(pieces(corpus, SMALL_BYTES), round(1_000_000 * scale)):
            file.write(json.dumps({"content": text.decode("utf-8", "replace")}) + "\n")


def write_files(corpus: Path, place: Path, scale: float) -> None:
    """Write 100,000 files of 1,000 bytes."""
    for number, text in enumerate(islice(pieces(corpus, FILE_BYTES), round(100_000 * scale))):
        folder = place / f"{number // 1000:03d}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number % 1000:03d}.h").write_bytes(text)


def write_large(corpus: Path, place: Path, scale: float) -> None:
    """Write one file of 300 MB."""
    with (place / "large.cpp").open("wb") as file:
        for text in islice(pieces(corpus, MEGABYTE), round(LARGE_BYTES * scale / MEGABYTE)):
            file.write(text)


def write_archives(corpus: Path, place: Path, scale: float) -> None:
    """Write 1,000 compressed archives of 20 files."""
    texts = pieces(corpus, FILE_BYTES)
    for number in range(round(1_000 * scale)):
        with tarfile.open(place / f"{number:04d}.tar.gz", "w:gz", compresslevel=1) as archive:
            for member, text in enumerate(islice(texts, MEMBERS)):
                entry = tarfile.TarInfo(f"{member}.h")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))


SHAPES: dict[str, Callable[[Path, Path, float], None]] = {
    "a million documents of 20 bytes in one JSONL file": write_lines,
    "100,000 loose files of 1 kB": write_files,
    "one file of 300 MB": write_large,
    "1,000 archives of 20 files": write_archives,
}


def measure(corpus: Path, tokenizer: Path, work: Path, scale: float) -> Iterator[Measured]:
    """Yield what a run on each shape takes."""
    for number, (shape, write) in enumerate(SHAPES.items()):
        sources, out = work / f"sources-{number}", work / f"out-{number}"
        sources.mkdir()
        write(corpus, sources, scale)
        words = ["run", str(sources), "--out", str(out), "--tokenizer", str(tokenizer), "--quiet"]
        words += ["--max-document-bytes", str(1 << 30)]
        ended = run_measured([sys.executable, "-m", "pipelines.cli", *words], work / f"log-{number}")
        row = Measured(shape, ended.seconds, ended.processor_seconds, ended.peak_bytes)
        typer.echo(
            f"{row.shape}: {row.seconds:,.1f} s, {row.processor_seconds:,.1f} s of processor time, "
            f"{row.peak_bytes / MEGABYTE:,.0f} MB"
        )
        yield row


def main(
    corpus: Annotated[Path, typer.Argument(help="A folder of C++ sources.")],
    tokenizer: Annotated[Path, typer.Option(help="The tokenizer to run with.")],
    scale: Annotated[float, typer.Option(help="The part of each shape to make.")] = 1.0,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Append the rows to this file.")] = None,  # noqa: UP045
) -> None:
    """Measure whole runs on sources of unusual shapes."""
    with bench_session() as (_, work):
        keep_rows(measure(corpus, tokenizer, work, scale), json_file)


if __name__ == "__main__":
    typer.run(main)
