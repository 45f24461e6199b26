"""The program of `cppmill sweep`: a run's counts to tokenizers of several sizes, their compression and what they cost.

Every tokenizer is built as in a run, with the run's options except the size, in a temporary folder. A larger vocabulary
makes fewer tokens of a text and gives a model more parameters; both are printed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cppmill_core
import numpy as np
import pandas as pd
from pydantic import ValidationError

from configs import VOCABULARY
from pipelines.console.progress import MEGABYTE, Reporter
from pipelines.console.tables import format_frame
from pipelines.pages.figures import write_plot
from pipelines.stages.build import read_scan_counts, write_tokenizer
from pipelines.tokenizers.texts import read_texts
from schemas.errors import ConfigError, IntegrityError
from schemas.options import BuildOptions, IngestOptions, RunOptions
from tokenizer_build.compare.costs import BYTES_A_PARAMETER, Model
from tokenizer_build.compare.origins import SUPERWORDS, read_bands
from tokenizer_build.vocabulary import VOCABULARY_JSON
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import temporary_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Size:
    """A tokenizer of one size on the text.

    Attributes:
        vocab_size: Its ids.
        superwords: How many of these are superwords.
        num_bytes: The bytes of the text.
        tokens: What it makes of them.
        unused: Ids with text that never occur in it.
    """

    vocab_size: int
    superwords: int
    num_bytes: int
    tokens: int
    unused: int


@dataclass(frozen=True)
class Built:
    """A tokenizer that was built, and how many of its ids are superwords."""

    tokenizer: cppmill_core.AnyTokenizer
    superwords: int


def parse_sizes(text: str) -> list[int]:
    """Return the sizes of a list as it was typed, ascending.

    Raises:
        ConfigError: If one is not a whole number.

    Example:
        >>> parse_sizes("65536, 16_384")
        [16384, 65536]
    """
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError(f"--sizes {text}: not a list of sizes; give numbers of ids, as 16384,32768") from None


def sweep(
    run: str, sizes: Sequence[int], places: Sequence[str], *, sample: float, threads: int, reporter: Reporter
) -> list[Size]:
    """Build a tokenizer of each size from a run's counts and encode a text with it.

    Args:
        run: The folder or URL of a finished run that scanned.
        sizes: Numbers of ids.
        places: Folders of runs, and sources: the text, best one that the run has not seen.
        sample: Take this share of the documents, chosen by path.
        threads: How many threads build and encode.
        reporter: Gets a note about each build.

    Raises:
        ConfigError: If the run is not finished or has no counts, or there is no text.
        IntegrityError: If the counts differ from the run's receipt.
        VocabularyConfigError: If a size is too small for the fixed tokens, or too large for the counts.
    """
    out = OutputFolder(run)
    options, names = _checked_counts(run, out)
    wanted = [_with_size(options.build, size) for size in sizes]
    temporary = temporary_folder()
    with temporary as folder, out.open_local_folder("tokenizer") as tokenizer:
        built = []
        own = (tokenizer / VOCABULARY_JSON).is_file()
        for build in wanted:
            started = time.monotonic()
            place = Path(folder, str(build.vocab_size))
            place.mkdir()
            with_size = options.model_copy(update={"build": build})
            counts = read_scan_counts(out, names, by_group=build.project_cap is not None)
            vocabulary = tokenizer if own else VOCABULARY
            write_tokenizer(counts, with_size, place, vocabulary=vocabulary, is_own_vocabulary=own, threads=threads)
            reporter.note(f"built {build.vocab_size:,} ids in {time.monotonic() - started:.1f} s")
            built.append(Built(cppmill_core.load_tokenizer(place), (read_bands(place) or []).count(SUPERWORDS)))
        return _measure(built, places, sample, threads)


def _checked_counts(run: str, out: OutputFolder) -> tuple[RunOptions, list[str]]:
    """Return the run's options and the files of its merged counts, once these have the receipt's digests."""
    receipt = read_receipt(out, argument="RUN")
    names = sorted(name for name in receipt["files"] if name.startswith("counts/") and "/parts/" not in name)
    if not any(name.startswith("counts/words/") for name in names):
        raise ConfigError(f"RUN {run}: it has no counts, because it used a given tokenizer; run `cppmill scan`")
    for name in names:
        if not out.exists(name) or out.hash(name) != receipt["files"][name]:
            raise IntegrityError(f"{out.where(name)}: it differs from the run's receipt; see `cppmill verify {run}`")
    return RunOptions.model_validate(receipt["configs"]), names


def _with_size(build: BuildOptions, size: int) -> BuildOptions:
    try:
        return BuildOptions.model_validate({**build.to_json(), "vocab_size": size})
    except ValidationError as error:
        raise ConfigError(f"--sizes {size}: {error.errors()[0]['msg']}") from error


def _measure(built: Sequence[Built], places: Sequence[str], sample: float, threads: int) -> list[Size]:
    counts = [np.zeros(one.tokenizer.vocab_size, np.int64) for one in built]
    num_bytes = 0
    for batch in read_texts(places, IngestOptions(sample=sample, detect_platforms=False), argument="--on"):
        contents: Any = batch["content"]
        num_bytes += sum(len(content) for content in contents.to_pylist())
        for one, count in zip(built, counts, strict=True):
            ids = one.tokenizer.encode_batch(contents, threads).flatten().to_numpy()
            count += np.bincount(ids, minlength=len(count))
    return [
        Size(
            vocab_size=one.tokenizer.vocab_size,
            superwords=one.superwords,
            num_bytes=num_bytes,
            tokens=int(count.sum()),
            unused=sum(one.tokenizer.token_bytes(int(number)) is not None for number in np.flatnonzero(count == 0)),
        )
        for one, count in zip(built, counts, strict=True)
    ]


def sweep_lines(sizes: Sequence[Size], models: Sequence[Model], *, as_json: bool) -> Iterator[str]:
    """Yield what the command prints: two tables, or a JSON object per size."""
    records = [_record(size, models) for size in sizes]
    yield from (json.dumps(record) for record in records) if as_json else _tables(records)


def plot_sweep(sizes: Sequence[Size], models: Sequence[Model], file: Path) -> None:
    """Draw, for each size, bytes per token and what training costs each model against its cheapest size.

    Args:
        sizes: What was measured.
        models: The models.
        file: Where to; its ending is the format. Equal figures give equal SVG files.

    Raises:
        ConfigError: If the file cannot be written.
        ResourceError: If there is no space for it.
    """
    records = [_record(size, models) for size in sizes]
    ids = [row["vocab_size"] for row in records]

    def paint(figure: Figure) -> None:
        gain, cost = figure.subplots(1, 2)
        gain.plot(ids, [row["bytes_per_token"] for row in records], marker=".")
        gain.set_title("bytes per token")
        for place, model in enumerate(models):
            work = [row["models"][place]["operations_per_byte"] for row in records]
            cost.plot(ids, [100 * (one / min(work) - 1) for one in work], marker=".", label=str(model))
        cost.set_title("% of training beyond the cheapest size")
        cost.legend()
        for axes in (gain, cost):
            axes.set_xscale("log", base=2)
            axes.set_xticks(ids, [f"{one:,}" for one in ids], rotation=45)
            axes.set_xlabel("ids")
            axes.grid(alpha=0.3)

    write_plot(file, (8, 4.5), paint)


def _record(size: Size, models: Sequence[Model]) -> dict[str, Any]:
    return {
        "record": "size",
        "vocab_size": size.vocab_size,
        "superwords": size.superwords,
        "bytes": size.num_bytes,
        "tokens": size.tokens,
        "bytes_per_token": size.num_bytes / size.tokens,
        "never_used": size.unused,
        "models": [
            {
                "model": str(model),
                "embedding_parameters": model.embedding_parameters(size.vocab_size),
                "embedding_bytes": BYTES_A_PARAMETER * model.embedding_parameters(size.vocab_size),
                "body_parameters": model.body_parameters,
                "operations_per_byte": model.operations(size.vocab_size, size.tokens / size.num_bytes),
            }
            for model in models
        ],
    }


def _tables(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    sizes = pd.DataFrame(records)
    yield from format_frame(
        sizes.assign(change=_change(sizes["tokens"])),
        {
            "ids": ("vocab_size", ","),
            "bytes/token": ("bytes_per_token", ".3f"),
            "tokens": ("tokens", ","),
            "against the first": ("change", "+.1%"),
            "never used": ("never_used", ","),
            "superwords": ("superwords", ","),
        },
    )
    for models in zip(*sizes["models"], strict=True):
        yield ""
        yield f"{models[0]['model']}: {models[0]['body_parameters'] / MEGABYTE:,.0f} M parameters without the embedding"
        yield from _model_table(pd.DataFrame(models).assign(vocab_size=sizes["vocab_size"]))


def _model_table(model: pd.DataFrame) -> list[str]:
    """Return the costs of one model, a line per size."""
    parameters = model["embedding_parameters"]
    costs = {
        "parameters": parameters / MEGABYTE,
        "share": parameters / (parameters + model["body_parameters"]),
        "megabytes": model["embedding_bytes"] / MEGABYTE,
        "work": model["operations_per_byte"] / MEGABYTE,
        "change": _change(model["operations_per_byte"]),
    }
    return format_frame(
        model.assign(**costs),
        {
            "ids": ("vocab_size", ","),
            "embedding": ("parameters", "{:,.1f} M".format),
            "of all": ("share", ".1%"),
            "bfloat16": ("megabytes", "{:,.0f} MB".format),
            "training, MFLOP per byte": ("work", ",.1f"),
            "against the first": ("change", "+.1%"),
        },
    )


def _change(column: pd.Series) -> pd.Series:
    """Return how far each value is from the first, as a share of it."""
    changes: pd.Series = column / column[0] - 1
    return changes
