"""`python -m benches.studies.ablations DIR HELD_OUT`: what each part of a build adds, in held-out bytes per token.

One table: seeds and bands on and off, superwords from several shares of the ids on, sizes of the vocabulary, each by
project of the held-out tree and in total, and how many ids never occur in the training text. Beside them o200k_base,
and plain BPE with the cl100k pattern on the same text at the same size. All of this comes from counts: the training
text is ingested and scanned once, the words and the lines of each held-out project are counted once, and a vocabulary
costs its training and one look at the counts. What `make ablations` runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benches.lib.foreign import count_cl100k, count_o200k
from benches.lib.options import HeldOutSources, JsonAppended
from benches.lib.session import bench_session, keep_rows
from benches.lib.texts import SourceText, batches, list_tree
from benches.lib.trainers import LINE_PATTERN, PATTERN, count_words
from benches.lib.vocabularies import count_text_tokens, merge_ours
from benches.studies.variants import ALL_BYTES, Ingredients, Variant, Vocabulary, read_words
from configs import VOCABULARY
from configs.layers import read_profile
from pipelines.console.progress import MEGABYTE, Reporter
from schemas.errors import ConfigError
from schemas.options import BuildOptions, RunOptions, ScanOptions
from tokenizer_build.build import ScanCounts

SIZES = (1 << 14, 1 << 15, 1 << 16, 1 << 17)
BASE_SIZE = 1 << 16
SUPERWORDS_AFTER = (0.5, 0.75, 0.9)
OTHERS_AFTER = 0.75
"""Where superwords begin at the other sizes: small ones have no room for all fixed tokens in half of their ids."""

TOTAL = "total"

Words = Sequence[pa.RecordBatch]
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@dataclass(frozen=True)
class HeldOut:
    """The held-out text by project: documents, and their bytes."""

    texts: Mapping[str, list[SourceText]]
    sizes: Mapping[str, int]

    def count(self, pattern: str, threads: int) -> dict[str, Words]:
        """Count the words of each project natively."""
        return {name: count_words(batches(iter(texts)), pattern, threads) for name, texts in self.texts.items()}


@dataclass(frozen=True)
class Result:
    """A row of the table.

    Attributes:
        name: The vocabulary.
        tokens: Tokens of each held-out project.
        sizes: Bytes of each held-out project.
        ids: Ids that text can have.
        unused: How many of them never occur in the training text; None if that was not counted.
    """

    name: str
    tokens: Mapping[str, int]
    sizes: Mapping[str, int]
    ids: int
    unused: int | None

    def bytes_per_token(self) -> dict[str, float]:
        """Return the bytes per token in each project, and in total."""
        rates = {project: self.sizes[project] / tokens for project, tokens in self.tokens.items()}
        return rates | {TOTAL: sum(self.sizes.values()) / sum(self.tokens.values())}


@app.command(epilog="Exit codes: 0 done, 1 a run failed, 2 wrong usage or too little text.")
def ablations(
    corpus: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="C++ to train on, or a run's folder.")
    ],
    held_out: HeldOutSources,
    json_file: JsonAppended = None,
    sizes: Annotated[
        list[int] | None, typer.Option("--vocab-size", help="Only these sizes; the first has the ablations.")
    ] = None,
    superwords: Annotated[bool, typer.Option(help="Learn superwords too; a folder of a run needs its lines.")] = True,
    profile: Annotated[
        str | None, typer.Option(help="Take patterns, thresholds and the first size of this profile.")
    ] = None,
    pattern: Annotated[str, typer.Option(help="Pattern of the words.")] = PATTERN,
    unit_pattern: Annotated[str, typer.Option(help="Pattern of the lines.")] = LINE_PATTERN,
    foreign: Annotated[bool, typer.Option(help="Measure o200k_base and the cl100k pattern too.")] = True,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 2,
) -> None:
    """Measure what each part of a build is worth, in bytes per token of held-out text.

    Without a scan in DIR the tree is ingested and scanned first, into a temporary folder (TMPDIR says where).
    """
    with bench_session() as (reporter, work):
        options = BuildOptions()
        if profile is not None:
            scan, options = profile_options(profile)
            pattern, unit_pattern = scan.pattern, scan.unit_pattern or unit_pattern
            sizes = sizes or [options.vocab_size]
        out = scanned(corpus.absolute(), work, (pattern, unit_pattern), threads, reporter)
        text = read_held_out(held_out.absolute())
        lines = tuple(sorted((out / "counts" / "units").glob("*.parquet")))
        ingredients = Ingredients(read_counts(out), lines, VOCABULARY, threads, pattern, unit_pattern, options)
        base, *others = sizes or (BASE_SIZE, *(size for size in SIZES if size != BASE_SIZE))
        variants = grid(base, others, superwords=superwords, by_use=options.min_fixed_use is not None)
        measured = measure(variants, ingredients, text, reporter)
        others_measured = measure_foreign(out, text, base, threads, reporter) if foreign else ()
        rows = keep_rows(chain(measured, others_measured), json_file)
    print(*markdown(rows), sep="\n")


def profile_options(name: str) -> tuple[ScanOptions, BuildOptions]:
    """Return what a profile says of the scan and of the build.

    Raises:
        ConfigError: If there is no such profile.
    """
    problems: list[str] = []
    layer = read_profile(name, origin=f"--profile {name}", problems=problems)
    if problems:
        raise ConfigError("\n".join(problems))
    return ScanOptions(**layer.table("scan")), BuildOptions(**layer.table("build"))


def grid(base: int, others: Iterable[int], *, superwords: bool, by_use: bool = False) -> list[Variant]:
    """Return what is learned: the base, it without seeds, bands, or both, it with superwords, then the other sizes.

    If the use of tokens decides which are fixed, the base with every fixed token is learned too.
    """
    variants = [Variant(base, seeds=seeds, bands=bands) for seeds in (True, False) for bands in (True, False)]
    variants += [Variant(base, every_fixed=True)] if by_use else []
    if superwords:
        variants += [Variant(base, superwords_after=after) for after in SUPERWORDS_AFTER]
    for size in sorted(others):
        variants += [Variant(size), *([Variant(size, superwords_after=OTHERS_AFTER)] if superwords else [])]
    return variants


def scanned(corpus: Path, work: Path, patterns: tuple[str, str], threads: int, reporter: Reporter) -> Path:
    """Return a folder with documents and counts: the one that is given, or a new one in `work`."""
    if (corpus / "counts" / "statistics.json").is_file():
        return corpus
    from configs.runs import RunConfig
    from pipelines.stages import ingest, scan

    options = RunOptions(scan=ScanOptions(pattern=patterns[0], unit_pattern=patterns[1]))
    config = RunConfig(sources=(str(corpus),), out=work / "run", threads=threads, options=options)
    ingest.run(config, reporter)
    scan.run(config, reporter)
    return config.out_folder


def read_counts(out: Path) -> ScanCounts:
    """Read what a scan counted."""
    counts = out / "counts"
    return ScanCounts(
        words=list(read_words(sorted(counts.glob("words/*.parquet")))),
        terms=pq.read_table(counts / "terms.parquet"),
        morphemes=pq.read_table(counts / "morphemes.parquet"),
        namespaces=pq.read_table(counts / "namespaces.parquet"),
        statistics=json.loads((counts / "statistics.json").read_bytes()),
    )


def read_held_out(root: Path) -> HeldOut:
    """Read the held-out documents."""
    texts: dict[str, list[SourceText]] = {}
    for text in list_tree(root).texts():
        texts.setdefault(text.project, []).append(text)
    return HeldOut(texts, {name: sum(len(text.content.encode()) for text in found) for name, found in texts.items()})


def measure(
    variants: Iterable[Variant], ingredients: Ingredients, text: HeldOut, reporter: Reporter
) -> Iterator[Result]:
    """Learn each variant and yield its row."""
    threads = ingredients.threads
    held_out = {pattern: text.count(pattern, threads) for pattern in (ingredients.pattern, ingredients.line_pattern)}
    for variant in variants:
        learned = ingredients.learn(variant)
        pattern = ingredients.pattern_of(variant)
        train, words = ingredients.text(pattern), held_out[pattern]
        row = measure_learned(variant.name, learned, train, words, text.sizes, threads)
        reporter.note(f"ablations: {row.name}: {row.bytes_per_token()[TOTAL]:.4f} bytes per token")
        yield row


def measure_learned(
    name: str,
    learned: Vocabulary,
    train: pa.RecordBatchReader,
    held_out: Mapping[str, Words],
    sizes: Mapping[str, int],
    threads: int,
) -> Result:
    """Encode the counted words of both texts with a vocabulary and return its row."""
    tokens = {project: count_text_tokens(learned.merges, words, threads) for project, words in held_out.items()}
    used = cppmill_core.count_tokens(learned.merges, train, threads=threads)
    return Result(name, tokens, sizes, len(learned.tokens), learned.unused(used))


def measure_foreign(out: Path, text: HeldOut, vocab_size: int, threads: int, reporter: Reporter) -> Iterator[Result]:
    """Yield the rows of o200k_base and of plain BPE with the cl100k pattern, trained on the same documents."""
    tokens = {project: count_o200k(texts, threads) for project, texts in text.texts.items()}
    reporter.note("ablations: o200k_base counted")
    yield Result("o200k_base", tokens, text.sizes, 200_000, None)
    counted = count_cl100k(read_documents(out))
    merges = merge_ours(counted, vocab_size, threads)
    strings = [
        left + right for left, right in zip(*(merges[name].to_pylist() for name in ("left", "right")), strict=True)
    ]
    learned = Vocabulary(merges, (*ALL_BYTES, *strings))
    words = {project: count_cl100k(item.content for item in texts) for project, texts in text.texts.items()}
    train = pa.RecordBatchReader.from_batches(counted[0].schema, counted)
    yield measure_learned(f"{vocab_size:,}, cl100k pattern", learned, train, words, text.sizes, threads)


def read_documents(out: Path) -> Iterator[str]:
    """Yield the documents of a run that are valid UTF-8."""
    for shard in sorted((out / "documents").glob("part-*.parquet")):
        with pq.ParquetFile(shard) as file:
            for batch in file.iter_batches(batch_size=256, columns=["content"]):
                contents: list[Any] = batch["content"].to_pylist()
                for content in contents:
                    try:
                        yield content.decode()
                    except UnicodeDecodeError:
                        continue


def markdown(rows: Iterable[Result]) -> Iterator[str]:
    """Yield the table."""
    results = list(rows)
    projects = [*results[0].sizes, TOTAL]
    yield f"| vocabulary | {' | '.join(projects)} | unused ids |"
    yield "|---|" + "--:|" * (len(projects) + 1)
    for row in results:
        rates = row.bytes_per_token()
        unused = "" if row.unused is None else f"{row.unused:,} of {row.ids:,}"
        yield f"| {row.name} | {' | '.join(f'{rates[project]:.3f}' for project in projects)} | {unused} |"
    sizes = results[0].sizes
    total = sum(sizes.values())
    yield f"| MB | {' | '.join(f'{size / MEGABYTE:.1f}' for size in (*sizes.values(), total))} | |"


if __name__ == "__main__":
    app(prog_name="python -m benches.studies.ablations")
