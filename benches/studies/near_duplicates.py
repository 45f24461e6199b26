"""`python -m benches.studies.near_duplicates DIR`: recall and precision of the near-duplicate filter.

The distinct documents of a sample are compared exactly, each with each: an inverted index of their shingles gives the
Jaccard similarity of every pair. Beside it is what signatures and bands find for the same similarity.

What it does not do: measure the passes over a corpus, which `cppmill ingest --json` prints.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benches.lib.texts import list_tree, path_fraction
from transforms.ingest.dedup.components import connected_components
from transforms.ingest.dedup.lsh import choose_bands, near_candidates, near_pairs
from transforms.ingest.minhash import sign
from transforms.ingest.shingles import Shingles, shingle

NEARLY = 0.05
"""A found pair that misses the similarity by no more is nearly right."""

_MAX_DOCUMENT_BYTES = 64 << 20
_CHOICES = ((0.8, 5, 128), (0.8, 5, 256), (0.8, 5, 512), (0.7, 5, 256), (0.9, 5, 256), (0.8, 8, 256))
"""Similarity, tokens of a shingle, permutations."""

Pairs = npt.NDArray[np.int64]
Similarity = npt.NDArray[np.float64]

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Near(NamedTuple):
    """Pairs of documents, the smaller number first, each as one number, ascending; and their similarity."""

    pairs: Pairs
    similarity: Similarity


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one choice of parameters finds.

    Attributes:
        exact: Pairs that are at least as similar as the threshold.
        recall: The share of them that is found.
        precision: The share of the found pairs that is among them.
        nearly: The share of the found pairs that is at most `NEARLY` below the similarity.
        dropped: Documents that are dropped.
        dropped_exactly: Documents that clusters of the exact pairs would drop.
        seconds: How long shingles, signatures and comparisons took.
    """

    exact: int
    recall: float
    precision: float
    nearly: float
    dropped: int
    dropped_exactly: int
    seconds: float


@app.command(epilog="Exit codes: 0 done, 2 wrong usage.")
def near_duplicates(
    corpus: Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="C++ sources.")],
    mb: Annotated[float, typer.Option("--mb", min=0.01, help="Megabytes of the sample, about, chosen by folder.")] = 40,
) -> None:
    """Compare what signatures find with the exact similarity of every pair of documents of a sample."""
    documents = distinct_documents(corpus, mb * 1e6)
    print(f"{len(documents):,} distinct documents, {sum(map(len, documents)) / 1e6:,.1f} MB")
    print(_line(("similarity", "tokens", "permutations", "bands", "pairs", "recall", "precision", "nearly", "dropped")))
    exact: dict[int, Near] = {}
    for similarity, tokens, permutations in _CHOICES:
        least = min(choice[0] for choice in _CHOICES) - NEARLY
        if tokens not in exact:
            exact[tokens] = exact_pairs(shingle(documents, tokens), least)
        bands = choose_bands(similarity, permutations)
        row = measure(documents, exact[tokens], similarity, tokens, permutations)
        shares = (f"{100 * share:.1f} %" for share in (row.recall, row.precision, row.nearly))
        cells = f"{similarity}", tokens, permutations, f"{bands.number} x {bands.width}", f"{row.exact:,}", *shares
        print(_line((*cells, f"{row.dropped:,} ({row.dropped_exactly:,})")), flush=True)


def _line(cells: Sequence[object]) -> str:
    return "".join(f"{cell:>14}" for cell in cells)


def distinct_documents(corpus: Path, num_bytes: float) -> list[bytes]:
    """Return the distinct documents with code of a sample of folders, as near-duplicates often share one, in order."""
    tree = list_tree(corpus)
    share = num_bytes / max(1, tree.num_bytes)
    found: dict[bytes, bytes] = {}
    for path in tree.paths:
        if path_fraction(path.rpartition("/")[0]) >= share:
            continue
        content = (tree.root / path).read_bytes()
        if b"\0" not in content and len(content) <= _MAX_DOCUMENT_BYTES and len(shingle([content], 1).hashes):
            found.setdefault(hashlib.sha256(content).digest(), content)
    return list(found.values())


def exact_pairs(shingles: Shingles, least: float) -> Near:
    """Return all pairs of documents of at least a similarity, by an inverted index.

    Args:
        shingles: The shingles of the documents.
        least: The least similarity.
    """
    sets = [np.unique(part) for part in np.split(shingles.hashes, shingles.offsets[1:-1].astype(np.int64))]
    sizes = np.array([len(part) for part in sets])
    _, number = np.unique(np.concatenate(sets), return_inverse=True)
    owner = np.repeat(np.arange(len(sets)), sizes)[np.argsort(number, kind="stable")]
    begins = np.concatenate([[0], np.cumsum(np.bincount(number))])
    found = list(_similar(np.split(number, np.cumsum(sizes)[:-1]), owner, begins, least))
    pairs, similarity = (np.concatenate(column) for column in zip(*found, strict=True))
    return Near(pairs, similarity)


def _similar(sets: Sequence[Pairs], owner: Pairs, begins: Pairs, least: float) -> Iterator[tuple[Pairs, Similarity]]:
    """Yield, for each document, its pairs with later ones and their similarity."""
    sizes = np.array([len(part) for part in sets])
    for document, part in enumerate(sets):
        first, count = begins[part], begins[part + 1] - begins[part]
        places = np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count)
        common = np.bincount(owner[places], minlength=len(sets))[document + 1 :]
        similarity = common / (sizes[document] + sizes[document + 1 :] - common)
        others = np.flatnonzero(similarity >= least)
        yield document * len(sets) + document + 1 + others, similarity[others]


def measure(documents: Sequence[bytes], exact: Near, similarity: float, tokens: int, permutations: int) -> Row:
    """Return what signatures find beside the exact pairs.

    Args:
        documents: Distinct documents, each with a code token.
        exact: Their pairs, down to `NEARLY` below the similarity at least.
        similarity: The least similarity.
        tokens: Code tokens of a shingle.
        permutations: Bytes of a signature.
    """
    started, count = time.perf_counter(), len(documents)
    signatures = sign(shingle(documents, tokens), permutations)
    bands = choose_bands(similarity, permutations)
    candidates = near_candidates(0, np.arange(count, dtype=np.uint32), signatures, bands)
    ends = [side.astype(np.int64) for side in near_pairs(candidates, similarity)]
    seconds = time.perf_counter() - started
    found = np.unique(np.minimum(*ends) * count + np.maximum(*ends))
    meant = exact.pairs[exact.similarity >= similarity]
    nearly = exact.pairs[exact.similarity >= similarity - NEARLY]
    return Row(
        exact=len(meant),
        recall=float(np.isin(meant, found).mean()) if len(meant) else 1.0,
        precision=float(np.isin(found, meant).mean()) if len(found) else 1.0,
        nearly=float(np.isin(found, nearly).mean()) if len(found) else 1.0,
        dropped=_dropped(found, count),
        dropped_exactly=_dropped(meant, count),
        seconds=seconds,
    )


def _dropped(pairs: Pairs, count: int) -> int:
    """Return how many documents clusters of pairs drop."""
    return count - len(np.unique(connected_components(count, pairs // count, pairs % count)))


if __name__ == "__main__":
    app(prog_name="python -m benches.studies.near_duplicates")
