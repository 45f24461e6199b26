"""`python -m benches.speed.filters DIR`: what each filter of ingest would drop from a corpus, and how fast it reads.

Every filter sees every document, independently of the others, and every copy of it. Reading is outside the clocks.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from pipelines.console.progress import MEGABYTE
from schemas.options import IngestOptions
from schemas.reasons import Column
from transforms.filters.decontamination import read_benchmark
from transforms.filters.verdicts import ContentFilter, make_content_filter
from transforms.ingest.input_units import plan_inputs
from transforms.sources.document import Document
from transforms.sources.listing import list_inputs
from transforms.sources.readers import read_documents

PERMISSIVE = ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "Zlib")
"""The allow-list that is measured."""

DETAILS = 8
"""So many of the most frequent details, and of the largest documents, are shown of each filter."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass
class Tally:
    """What one filter did."""

    content_filter: ContentFilter
    documents: int = 0
    num_bytes: int = 0
    seconds: float = 0.0
    details: Counter[str] = field(default_factory=Counter)
    largest: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, document: Document, content: bytes) -> None:
        """Filter a document."""
        started = time.process_time()
        verdict = self.content_filter(content, document.named_license)
        self.seconds += time.process_time() - started
        if verdict.column is Column.KEPT:
            return
        self.documents += 1
        self.num_bytes += len(content)
        self.details[verdict.detail.partition(" in line ")[0]] += 1
        self.largest.append((len(content), document.path, verdict.detail))


@app.command(epilog="Exit codes: 0 done, 2 wrong usage.")
def filters(
    corpus: Annotated[Path, typer.Argument(metavar="DIR", exists=True, help="A folder of C++ sources.")],
    benchmark: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", exists=True, help="A benchmark to look for; repeatable.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Name details and the largest documents of each filter.")
    ] = False,
) -> None:
    """Print the share of the documents and bytes of a corpus that each filter drops, and its speed on one CPU."""
    tallies = {name: Tally(_content_filter(options)) for name, options in _options(benchmark or []).items()}
    documents = num_bytes = 0
    for document in _documents(corpus):
        content = document.content or b""
        documents, num_bytes = documents + 1, num_bytes + len(content)
        for tally in tallies.values():
            tally.add(document, content)
    if not documents:
        raise typer.BadParameter(f"{corpus} has no C++ in it", param_hint="DIR")
    print(f"{documents:,} documents, {num_bytes:,} bytes\n")
    print("| filter | documents | share | bytes | share | MB/s of a CPU |\n|---|---|---|---|---|---|")
    for name, tally in tallies.items():
        shares = f"{tally.documents:,} | {tally.documents / documents:.3%} | {tally.num_bytes:,} | "
        print(f"| {name} | {shares}{tally.num_bytes / num_bytes:.3%} | {num_bytes / MEGABYTE / tally.seconds:.0f} |")
    for name, tally in tallies.items() if show else ():
        print(f"\n{name}: {dict(tally.details.most_common(DETAILS))}")
        print(
            *(f"  {size:,} {path}: {detail}" for size, path, detail in sorted(tally.largest)[: -DETAILS - 1 : -1]),
            sep="\n",
        )


def _content_filter(options: IngestOptions) -> ContentFilter:
    return make_content_filter(options, read_benchmark(options))


def _options(benchmark: list[Path]) -> dict[str, IngestOptions]:
    """Return the options that switch on one filter each."""
    named: dict[str, dict[str, object]] = {
        "drop_generated": {"drop_generated": True},
        "max_line_bytes = 10_000": {"max_line_bytes": 10_000},
        "min_unique_line_ratio = 0.2": {"min_unique_line_ratio": 0.2},
        'allowed_licenses, "keep"': {"allowed_licenses": PERMISSIVE, "unlicensed": "keep"},
        'allowed_licenses, "drop"': {"allowed_licenses": PERMISSIVE},
        "drop_minified": {"drop_minified": True},
        "drop_secrets": {"drop_secrets": True},
    }
    if benchmark:
        named["decontaminate"] = {"decontaminate": tuple(map(str, benchmark))}
    return {name: IngestOptions.model_validate(options) for name, options in named.items()}


def _documents(corpus: Path) -> Iterator[Document]:
    """Yield the documents that ingest keeps without any filter that is not on by default, copies among them."""
    options = IngestOptions()
    keeps = make_content_filter(options)
    for unit in plan_inputs(list_inputs([str(corpus)], options), options):
        for document in read_documents(unit, options):
            if document.content is not None and keeps(document.content, None).column is Column.KEPT:
                yield document


if __name__ == "__main__":
    app()
