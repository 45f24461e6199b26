"""The program of `cppmill lengths`: the token lengths of a finished run's documents, as a table and as a plot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from pipelines.pages.figures import write_plot
from schemas.errors import IntegrityError
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder
from transforms.tokens.lengths import CANDIDATES, PERCENTILES, Lengths, count_lengths
from transforms.tokens.shards import token_shards

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def read_lengths(run: str) -> Lengths:
    """Return the lengths of the documents of a finished run; only one column of its token shards is read.

    Raises:
        ConfigError: If it is not a finished run.
        IntegrityError: If its token shards are not as the receipt says.
    """
    out = OutputFolder(run)
    receipt = read_receipt(out)
    return count_lengths(_columns(out, receipt))


def describe_lengths(found: Lengths) -> list[str]:
    """Return the lines of the table."""
    mean = found.tokens / found.documents if found.documents else 0
    spread = ", ".join(f"{percent:g} %: {found.percentile(percent):,}" for percent in PERCENTILES)
    lines = [
        f"{found.documents:,} documents, {found.tokens:,} tokens, {mean:,.0f} per document, the longest "
        f"{found.percentile(100):,}",
        f"percentiles  {spread}",
        "",
        "     up to   documents              tokens",
    ]
    lines += [
        f"{bound:>10,}  {documents:>10,} {_percent(documents, found.documents)}  {tokens:>12,} "
        f"{_percent(tokens, found.tokens)}"
        for bound, documents, tokens in found.doublings()
        if documents
    ]
    lines += ["", "  sequence   documents   tokens kept, longer ones     tokens in padded sequences"]
    lines += ["    length       whole     dropped         cut            dropped         cut"]
    for kept in map(found.kept, CANDIDATES):
        lines.append(
            f"{kept.length:>10,}    {kept.whole:8.2%}    {kept.tokens_dropped:8.2%}    {kept.tokens_cut:8.2%}"
            f"           {kept.padded_dropped:8.2%}    {kept.padded_cut:8.2%}"
        )
    return lines


def print_lengths(found: Lengths, *, as_json: bool) -> None:
    """Print the table, or one JSON object."""
    print(json.dumps(found.to_json()) if as_json else "\n".join(describe_lengths(found)))


def plot_lengths(found: Lengths, file: Path) -> None:
    """Draw the shares of documents and of tokens up to each length.

    Args:
        found: The distribution.
        file: Where to; its ending is the format. Equal distributions give equal SVG files.

    Raises:
        ConfigError: If the file cannot be written.
        ResourceError: If there is no space for it.
    """
    bounds = [1 << power for power in range(6, max(18, found.percentile(100).bit_length() + 1))]
    rows = [found.kept(bound) for bound in bounds]
    lines = {
        "documents that are no longer": [row.whole for row in rows],
        "tokens kept, longer documents dropped": [row.tokens_dropped for row in rows],
        "tokens kept, longer documents cut": [row.tokens_cut for row in rows],
    }

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for label, values in lines.items():
            axes.plot(bounds, [100 * value for value in values], marker=".", label=label)
        axes.set_xscale("log", base=2)
        axes.set_xticks(bounds, [f"{bound:,}" for bound in bounds], rotation=45)
        axes.set_xlabel("sequence length, tokens")
        axes.set_ylabel("% of all")
        axes.set_title(f"{found.documents:,} documents, {found.tokens:,} tokens")
        axes.grid(alpha=0.3)
        axes.legend()

    write_plot(file, (8, 4.5), paint)


def _columns(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[Any]:
    """Yield the lengths in each shard, which must add up to what the receipt says; no other column is read."""
    for shard in token_shards(receipt):
        try:
            with out.open_ranges(shard.path) as source, pq.ParquetFile(source) as file:
                lengths = file.read(columns=["num_tokens"])["num_tokens"].to_numpy()
        except FileNotFoundError as error:
            raise IntegrityError(f"{out.where(shard.path)}: missing, and the receipt names it; run again") from error
        found = len(lengths), int(lengths.sum())
        if found != (shard.rows, shard.tokens):
            raise IntegrityError(
                f"{out.where(shard.path)}: {found[0]:,} documents of {found[1]:,} tokens, the receipt says "
                f"{shard.rows:,} of {shard.tokens:,}; see `cppmill verify`"
            )
        yield lengths


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:7.2%}" if whole else f"{'':7}"
