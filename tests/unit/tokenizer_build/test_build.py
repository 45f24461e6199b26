from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from schemas.tables import TERMS
from tokenizer_build.build import BuildSummary, ScanCounts
from tokenizer_build.lock import release_vocabulary
from tokenizer_build.vocabulary import Vocabulary

Build = Callable[..., BuildSummary]
STRICT = BuildOptions(vocab_size=12_288, min_hits=10)


def fixed_ids(tokenizer: Path) -> dict[str, int]:
    manifest = json.loads((tokenizer / "manifest.json").read_bytes())
    return {token["token"]: token["id"] for token in manifest["tokens"]}


def vocab(tokenizer: Path) -> dict[str, int]:
    ids: dict[str, int] = json.loads((tokenizer / "tokenizer.json").read_bytes())["model"]["vocab"]
    return ids


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_directory_holds_these_files(small_tokenizer: Path) -> None:
    assert sorted(files(small_tokenizer)) == [
        "decisions.parquet",
        "decisions.txt",
        "findings.md",
        "manifest.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.tsv",
    ]


def test_the_same_input_gives_the_same_bytes_in_any_order(
    build: Build, small_tokenizer: Path, words: pa.RecordBatch, terms: pa.Table, tmp_path: Path
) -> None:
    third = words.num_rows // 3
    batches = [words.slice(third), words.slice(0, third)]
    build(tmp_path / "again", words=batches, terms=terms.take(list(reversed(range(terms.num_rows)))), threads=2)
    assert files(tmp_path / "again") == files(small_tokenizer)


def test_the_summary_adds_up(build: Build, vocabulary: Vocabulary, tmp_path: Path) -> None:
    summary = build(tmp_path / "out")
    fixed = sum(summary.fixed_tokens.values())
    assert fixed == len(fixed_ids(tmp_path / "out"))
    assert summary.vocab_size == fixed + summary.reserved_ids + summary.missing_bytes + summary.learned_tokens == 12_288
    domain = [token for token in vocabulary.tokens if token.band.name == "domain"]
    split = {token.token for token in domain}.intersection(summary.split_by_pattern)
    assert summary.candidates_cut == len(domain) - summary.fixed_tokens["domain"] - len(split)
    assert len(summary.split_by_pattern) - len(split) == 9
    assert 0 < summary.seed_pieces < summary.merges
    assert (summary.kept_by_lock, summary.revision) == ((), "unreleased")


def test_a_freed_id_becomes_a_learned_token(build: Build, small_tokenizer: Path, tmp_path: Path) -> None:
    build(tmp_path / "cut", terms=TERMS.empty_table(), options=STRICT)
    freed = set(fixed_ids(small_tokenizer).values()) - set(fixed_ids(tmp_path / "cut").values())
    spelled = {i: token for token, i in vocab(tmp_path / "cut").items()}
    assert len(freed) > 30
    assert not any(spelled[i].startswith("<RESERVED") for i in freed)


@pytest.mark.parametrize("vocab_size", [7200, 7201, 8192])
def test_the_least_sizes_work_and_keep_every_fixed_id(
    build: Build, small_tokenizer: Path, tmp_path: Path, vocab_size: int
) -> None:
    build(tmp_path / "out", options=BuildOptions(vocab_size=vocab_size))
    build(tmp_path / "larger", options=STRICT)
    fixed = fixed_ids(tmp_path / "out")
    assert fixed == fixed_ids(tmp_path / "larger")
    assert fixed.items() < fixed_ids(small_tokenizer).items()
    assert sorted(vocab(tmp_path / "out").values()) == list(range(vocab_size))


def test_the_report_holds_what_the_scan_counted(small_tokenizer: Path, terms: pa.Table, morphemes: pa.Table) -> None:
    rows = pq.read_table(small_tokenizer / "decisions.parquet").to_pylist()
    reported = {(row["token"], row["category"]): (row["hits"], row["documents"]) for row in rows}
    counted = {(t["term"], t["category"]): (t["hits"], t["documents"]) for t in terms.to_pylist()}
    counted |= {
        (m["morpheme"], f"morpheme:{m['position']}"): (m["hits"], m["documents"]) for m in morphemes.to_pylist()
    }
    assert len(counted) > 150
    assert {key: reported[key] for key in counted} == counted
    assert {counts for key, counts in reported.items() if key not in counted} == {(0, 0)}


def test_too_small_a_size_is_refused_with_the_least(build: Build, tmp_path: Path) -> None:
    with pytest.raises(VocabularyConfigError, match=r"vocab_size = 4096: too small; .*need at least 7200"):
        build(tmp_path / "out", options=BuildOptions().model_copy(update={"vocab_size": 4096}))


def test_a_released_tokenizer_that_is_built_again_has_its_revision(
    build: Build, small_tokenizer: Path, vocabulary_copy: Path, tmp_path: Path
) -> None:
    release_vocabulary(vocabulary_copy, small_tokenizer, "1.0")
    assert build(tmp_path / "out", vocabulary_dir=vocabulary_copy).revision == "1.0"


def test_a_locked_token_that_people_removed_leaves_its_id_reserved(
    build: Build, small_tokenizer: Path, vocabulary_copy: Path, tmp_path: Path
) -> None:
    release_vocabulary(vocabulary_copy, small_tokenizer, "1.0")
    path = vocabulary_copy / "language" / "keywords.toml"
    path.write_text(path.read_text().replace('72 = "register"\n', ""))
    build(tmp_path / "out", vocabulary_dir=vocabulary_copy)
    assert vocab(tmp_path / "out")["<RESERVED_72>"] == 72
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert [72, 72] in manifest["reserved"]


def test_an_unknown_pattern_is_refused_with_the_known_ones(build: Build, tmp_path: Path) -> None:
    with pytest.raises(VocabularyConfigError, match=r"'cpp-word-1': no such pattern; did you mean 'cpp-words-1'\?"):
        build(tmp_path / "out", pattern="cpp-word-1")


@pytest.mark.parametrize("superwords_after", [None, 0.85], ids=["words", "superwords"])
def test_the_findings_count_every_byte_of_the_text_that_was_learned_from(
    build: Build,
    scan_documents: Callable[[list[bytes]], ScanCounts],
    documents: list[bytes],
    lenient: BuildOptions,
    tmp_path: Path,
    superwords_after: float | None,
) -> None:
    counts = scan_documents(documents)
    lines = counts.lines.read_all() if counts.lines else pa.table({})
    texts = pa.Table.from_batches(counts.words) if superwords_after is None else lines
    num_bytes = sum(len(row["word"]) * row["count"] for row in texts.to_pylist())
    made = replace(counts, lines=lines.to_reader(), reread=lambda: texts.to_reader())
    options = lenient.model_copy(update={"superwords_after": superwords_after})
    build(tmp_path / "out", counts=made, options=options)
    report = (tmp_path / "out/findings.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if "|" in line]
    use = {row[0]: [int(cell.replace(",", "")) for cell in row[1:4]] for row in rows[2:13] if row[-1].endswith("%")}
    assert "learned" in use
    assert all(used <= ids for ids, used, _ in use.values())
    tokenizer = cppmill_core.Tokenizer.from_dir(tmp_path / "out")
    tokens = sum(len(ids) * row["count"] for row in texts.to_pylist() for ids in [tokenizer.encode(row["word"])])
    assert sum(tokens for *_, tokens in use.values()) == tokens < num_bytes


def test_a_small_build_leaves_out_what_the_text_hardly_has_and_moves_no_fixed_id(build: Build, tmp_path: Path) -> None:
    build(tmp_path / "every", options=STRICT)
    summary = build(tmp_path / "needed", options=STRICT.model_copy(update={"min_fixed_use": 1.0}))
    needed, every = (fixed_ids(tmp_path / name) for name in ("needed", "every"))
    assert needed.items() < every.items()
    assert 300 < len(needed) < len(every) - 1000
    assert summary.reserved_ids == 216
    assert sorted(vocab(tmp_path / "needed").values()) == list(range(12_288))
    rows = pq.read_table(tmp_path / "needed/decisions.parquet").to_pylist()
    assert every.keys() - needed.keys() == {row["token"] for row in rows if row["rule"] == "below_learned_use"}
    assert re.search(
        r"Left out [\d,]+ fixed tokens that the text has fewer than \d+ times, .*library [\d,]+ of [\d,]+",
        (tmp_path / "needed/findings.md").read_text(),
    )


@pytest.mark.parametrize("options", [STRICT, STRICT.model_copy(update={"min_fixed_use": 1.0})], ids=["all", "needed"])
def test_a_release_of_cppmill_changes_no_build_and_one_of_a_user_binds_it(
    build: Build, small_tokenizer: Path, vocabulary_copy: Path, options: BuildOptions, tmp_path: Path
) -> None:
    build(tmp_path / "before", options=options)
    assert fixed_ids(tmp_path / "before").items() < fixed_ids(small_tokenizer).items()
    release_vocabulary(vocabulary_copy, small_tokenizer, "cppmill-2")
    build(tmp_path / "pinned", options=options, vocabulary_dir=vocabulary_copy)
    assert files(tmp_path / "pinned") == files(tmp_path / "before")
    release_vocabulary(vocabulary_copy, small_tokenizer, "1.0")
    build(tmp_path / "bound", options=options, vocabulary_dir=vocabulary_copy)
    assert fixed_ids(tmp_path / "bound") == fixed_ids(small_tokenizer)


def test_superwords_and_a_least_use_are_refused_together(build: Build, lenient: BuildOptions, tmp_path: Path) -> None:
    options = lenient.model_copy(update={"superwords_after": 0.85, "min_fixed_use": 1.0})
    with pytest.raises(VocabularyConfigError, match=r"min_fixed_use = 1.0: not with superwords"):
        build(tmp_path / "out", options=options)
