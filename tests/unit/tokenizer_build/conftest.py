"""A vocabulary to break, and word counts of real C++ headers to train on."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest

from schemas.options import BuildOptions
from schemas.tables import MORPHEMES, NAMESPACES, TERMS
from tokenizer_build.build import BuildSummary, ScanCounts, build_tokenizer
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.vocabulary import Vocabulary

ROOT = Path(__file__).parents[3]
VOCABULARY_DIR = ROOT / "configs" / "vocab"
REFERENCE_DIR = ROOT / "tests" / "data" / "reference"
PATTERN = "cpp-words-1"
LINE_PATTERN = "cpp-lines-1"
SMALL_VOCAB_SIZE = 12_288
_HEADER_BYTES = 1_500_000


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return load_vocabulary(VOCABULARY_DIR)[0]


@pytest.fixture(scope="session")
def published_tokens() -> dict[int, str]:
    """The published fixed tokens, with the escapes of the whitespace band as the characters that they mean."""
    raw = json.loads((REFERENCE_DIR / "megacpp_v3_fixed_tokens.json").read_text())
    escapes = {"\\t": "\t", "\\r": "\r", "\\n": "\n"}
    tokens = {int(token_id): token for token_id, token in raw.items()}
    for token_id in tokens:
        if 1200 <= token_id < 1500:
            tokens[token_id] = re.sub(r"\\[trn]", lambda found: escapes[found[0]], tokens[token_id])
    return tokens


@pytest.fixture
def vocabulary_copy(tmp_path: Path) -> Path:
    """A folder with the shipped vocabulary that a test may change."""
    return Path(shutil.copytree(VOCABULARY_DIR, tmp_path / "vocab"))


@pytest.fixture
def tiny_vocabulary(tmp_path: Path) -> Path:
    """A folder with a few tokens of each strength."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    control = "".join(f'{i} = "{name}"\n' for i, name in enumerate(("<PAD>", "<UNK>", "<BOS>", "<EOS>")))
    (folder / "control.toml").write_text(f'band = "control"\n[tokens]\n{control}')
    (folder / "keywords.toml").write_text('band = "keywords"\n[tokens]\n64 = "auto"\n65 = "const"\n')
    domain = (
        '[[candidates]]\ncategory = "gtest"\nmatch = "ident"\n[candidates.tokens]\n5300 = "TEST"\n5301 = "EXPECT_EQ"\n'
    )
    (folder / "domain.toml").write_text(f'band = "domain"\n{domain}')
    (folder / "ids.lock").write_text('"<PAD>"\t0\tpublished\n')
    return folder


def headers() -> list[Path]:
    """Real C++ that every test environment has: numpy's headers, and the C++ library's if installed."""
    libraries = sorted(Path("/usr/include/c++").glob("*"))[-1:]
    roots = [Path(np.get_include()), *libraries]
    return [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]


def header_text(limit: int = _HEADER_BYTES) -> list[bytes]:
    documents, size = [], 0
    for path in headers():
        content = path.read_bytes()
        size += len(content)
        if size > limit:
            break
        documents.append(content)
    return documents


def scan(
    vocabulary: Vocabulary, documents: list[bytes], pattern: str = PATTERN, line_pattern: str = LINE_PATTERN
) -> dict[str, pa.RecordBatch]:
    """Count documents of one project as a scan unit does."""
    config = {
        "pattern": pattern,
        "unit_pattern": line_pattern,
        "candidates": vocabulary.scanner_candidates(),
        "morphemes": vocabulary.scanner_morphemes(),
    }
    scanner = cppmill_core.Scanner(json.dumps(config))
    columns = [pa.array(["headers"] * len(documents)), pa.array(documents, pa.binary())]
    scanner.add(pa.RecordBatch.from_arrays(columns, names=["project", "content"]))
    counts = scanner.finish()
    read = {kind: counts[kind].read_all().combine_chunks().to_batches()[0] for kind in ("words", "units")}
    return counts | {kind: rows.select(["word", "count"]) for kind, rows in read.items()}


def of_one_project(counts: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Replace the column of the one project by how many projects there are."""
    table = pa.table(counts).append_column("projects", pa.array([1] * counts.num_rows, pa.uint64()))
    return table.select(schema.names).cast(schema)


@pytest.fixture(scope="session")
def documents() -> list[bytes]:
    return header_text()


@pytest.fixture(scope="session")
def counts(vocabulary: Vocabulary, documents: list[bytes]) -> dict[str, pa.RecordBatch]:
    return scan(vocabulary, documents)


@pytest.fixture(scope="session")
def words(counts: dict[str, pa.RecordBatch]) -> pa.RecordBatch:
    return counts["words"]


@pytest.fixture(scope="session")
def terms(counts: dict[str, pa.RecordBatch]) -> pa.Table:
    return of_one_project(counts["terms"], TERMS)


@pytest.fixture(scope="session")
def morphemes(counts: dict[str, pa.RecordBatch]) -> pa.Table:
    return of_one_project(counts["morphemes"], MORPHEMES)


def scan_counts(counts: dict[str, pa.RecordBatch]) -> ScanCounts:
    """Return the counts of one project as the merged files of a scan hold them."""
    values = dict(zip(*counts["statistics"].to_pydict().values(), strict=True))
    return ScanCounts(
        words=[counts["words"]],
        lines=pa.Table.from_batches([counts["units"]]).to_reader(),
        terms=of_one_project(counts["terms"], TERMS),
        morphemes=of_one_project(counts["morphemes"], MORPHEMES),
        namespaces=of_one_project(counts["namespaces"], NAMESPACES),
        statistics={"documents": values["documents"], "bytes": {"total": values["bytes"]}},
    )


@pytest.fixture(scope="session")
def scan_documents(vocabulary: Vocabulary) -> Callable[..., ScanCounts]:
    """Scan documents of one project to the counts that a build takes; the arguments after them are patterns."""
    return lambda documents, *patterns: scan_counts(scan(vocabulary, documents, *patterns))


Build = Callable[..., BuildSummary]

LENIENT = BuildOptions(
    vocab_size=SMALL_VOCAB_SIZE,
    min_hits=0,
    min_category_hits_per_name=0,
    min_category_projects=0,
    min_category_hit_share=0.0,
)
"""Keeps every candidate but the generic ones."""


@pytest.fixture(scope="session")
def lenient() -> BuildOptions:
    return LENIENT


@pytest.fixture(scope="session")
def build(counts: dict[str, pa.RecordBatch]) -> Build:
    """Build with the headers' counts; keyword arguments replace the defaults and the counts."""

    def run(out: Path, **changes: object) -> BuildSummary:
        out.mkdir(parents=True)
        parts: dict[str, Any] = {name: changes.pop(name) for name in ("words", "lines", "terms") if name in changes}
        made = changes.pop("counts", scan_counts(counts))
        assert isinstance(made, ScanCounts)
        patterns = {"pattern": PATTERN, "line_pattern": LINE_PATTERN}
        arguments: dict[str, Any] = {"vocabulary_dir": VOCABULARY_DIR, "options": LENIENT, **patterns}
        return build_tokenizer(replace(made, **parts), **(arguments | changes), out=out)

    return run


@pytest.fixture(scope="session")
def small_tokenizer(build: Build, prepared: Callable[..., Path]) -> Path:
    """A tokenizer of 12,288 ids that keeps every candidate but the generic ones."""
    return prepared("small-tokenizer", lambda folder: build(folder / "tokenizer")) / "tokenizer"
