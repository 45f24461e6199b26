"""Megatron's own dataset and a loop as nanoGPT's read exported files and train on them, with real torch."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cppmill_core.loader import Loader

from pipelines.engines.cache import engine_path
from schemas.tables import MAX_PLATFORM_IDS
from tests.engines import training_programs as programs

SPLIT = ["--split-by", "document", "--validation-fraction", "0.2", "--shard-tokens", "30000", "--platform-ids"]
BLOCK_SIZE, BATCH_SIZE, STEPS = 64, 4, 12

Documents = dict[tuple[int, ...], list[int]]
"""The padded platform ids of each document, by its tokens."""


@pytest.fixture(scope="module")
def documents(run: Any) -> Documents:
    rows = pq.read_table(run.out / "tokens", columns=["token_ids", "platform_ids"]).to_pylist()
    found = {tuple(row["token_ids"]): padded(row["platform_ids"]) for row in rows}
    assert len(found) == len(rows) > 20
    return found


def padded(ids: list[int]) -> list[int]:
    return ids + [0] * (MAX_PLATFORM_IDS - len(ids))


@pytest.fixture(scope="module")
def page(repository: Path) -> dict[str, str]:
    """The code of the page on launching, by heading."""
    parts = (repository / "docs/how-to/models/launching.md").read_text(encoding="utf-8").split("\n## ")
    code = {part.partition("\n")[0]: re.search(r"^```python\n(.*?)^```$", part, re.M | re.S) for part in parts}
    return {heading: found[1] for heading, found in code.items() if found}


@pytest.fixture(scope="module")
def pairs(run: Any, cppmill: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Megatron pairs with platforms, and the arguments that their export printed."""
    out = tmp_path_factory.mktemp("pairs") / "out"
    done = cppmill("shards", run.out, "--out", out, "--format", "megatron", *SPLIT)
    lines = re.findall(r"--(train|valid)-data-path (.+)$", done.stdout + done.stderr, re.M)
    assert [name for name, _ in lines] == ["train", "valid"]
    return out, {name: words.split() for name, words in lines}


@pytest.fixture(scope="module")
def in_megatron(in_torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Call a function in a process that has torch and megatron-core."""
    in_torch(programs.begin_megatron, str(engine_path("megatron")), tmp_path_factory.mktemp("group"))
    return in_torch


def test_positions_of_sequences_have_the_platforms_of_their_segment(
    in_torch: Any, run: Any, cppmill: Any, repository: Path, tmp_path: Path
) -> None:
    cppmill("sequences", run.out, "--out", tmp_path / "out", "--length", "512", "--platform-ids")
    text = (repository / "docs/how-to/sequences.md").read_text(encoding="utf-8")
    [code] = [code for code in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S) if "pad_bags" in code]
    found = in_torch(programs.embed_sequences, tmp_path / "out/sequences", code, BATCH_SIZE)
    rows = list(Loader(tmp_path / "out/sequences", columns=["num_tokens", "starts", "platform_ids"]))
    assert len(found) == -(-len(rows) // BATCH_SIZE) > 10
    for step, (segments, bags) in enumerate(found):
        here = rows[BATCH_SIZE * step : BATCH_SIZE * (step + 1)]
        assert bags == [padded(ids.tolist()) for row in here for ids in row["platform_ids"]]
        first = 0
        for row, numbers in zip(here, segments, strict=True):
            places = range(len(numbers))
            assert numbers == [first + bisect_right(row["starts"].tolist(), place) - 1 for place in places]
            first += len(row["starts"])


def test_megatron_reads_each_document_as_a_sequence(in_megatron: Any, pairs: Any, documents: Any) -> None:
    found = []
    for path in sorted(pairs[0].glob("shards/*.idx")):
        kind, sequences, places = in_megatron(programs.read_index, str(path.with_suffix("")))
        assert (kind, places) == ("uint16", list(range(len(sequences) + 1)))
        found += [tuple(sequence) for sequence in sequences]
    assert sorted(found) == sorted(documents)


def test_megatrons_samples_are_the_documents_one_after_another(in_megatron: Any, run: Any, pairs: Any) -> None:
    prefix = pairs[1]["train"][1]
    _, sequences, _ = in_megatron(programs.read_index, prefix)
    order, shuffled, samples = in_megatron(programs.read_samples, prefix, run.out / "tokenizer", BLOCK_SIZE)
    assert sorted(order) == list(range(len(sequences)))
    stream = [token for number in order for token in sequences[number]]
    assert len(samples) == (len(stream) - 1) // BLOCK_SIZE > 100
    eos, seen = sequences[0][-1], 0
    for number, sample in zip(shuffled, samples, strict=True):
        start = number * BLOCK_SIZE
        assert sample["tokens"] == stream[start : start + BLOCK_SIZE]
        assert sample["labels"] == stream[start + 1 : start + BLOCK_SIZE + 1]
        assert sample["loss_mask"] == [float(token != eos) for token in sample["tokens"]]
        if eos in sample["tokens"][:-1]:
            seen += 1
            assert sample["position_ids"][sample["tokens"].index(eos) + 1] == 0
    assert seen


def test_a_model_of_megatron_trains_on_pairs_with_their_platforms(
    in_megatron: Any, run: Any, other_tokenizer: Path, pairs: Any, documents: Any, page: Any, tmp_path: Path
) -> None:
    arguments, checkpoint = pairs[1], tmp_path / "model_optim_rng.pt"
    sizes = (STEPS, BATCH_SIZE, BLOCK_SIZE)
    found = in_megatron(programs.train_megatron, page["Megatron"], arguments, run.out, checkpoint, *sizes)
    assert sum(found["losses"][-3:]) < sum(found["losses"][:3]) - 3
    weights = [int(word) for word in arguments["train"][::2]]
    assert len(weights) > 1
    shares = [STEPS * BATCH_SIZE * weight / sum(weights) for weight in weights]
    assert all(abs(count - share) <= 1 for count, share in zip(found["pairs"], shares, strict=True))
    check_samples(found["samples"], documents)
    assert in_megatron(programs.check_vocab, checkpoint, [run.out, run.out / "tokenizer"]) == ["", ""]
    [said] = in_megatron(programs.check_vocab, checkpoint, [other_tokenizer])
    assert "of tokenizer" in said


def check_samples(samples: Any, documents: Documents) -> None:
    """Check the platforms of each part of a sample, and that some parts have any."""
    eos, known = next(iter(documents))[-1], 0
    for tokens, platforms in samples:
        ends = {0, *(place + 1 for place, token in enumerate(tokens) if token == eos), len(tokens)}
        for start, end in pairwise(sorted(ends)):
            known += check_part(tokens[start:end], platforms[start:end], documents)
    assert known


def check_part(tokens: list[int], platforms: list[list[int]], documents: Documents) -> bool:
    """Check that all tokens have the platforms of one document that has these tokens; return whether it has any."""
    assert all(ids == platforms[0] for ids in platforms)
    assert platforms[0] in [ids for whole, ids in documents.items() if is_within(tuple(tokens), whole)]
    return any(platforms[0])


def is_within(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    joined, sought = (b"".join(token.to_bytes(4, "big") for token in ids) for ids in (whole, part))
    return any(found.start() % 4 == 0 for found in re.finditer(re.escape(sought), joined))


def test_a_loop_as_nanogpts_trains_on_bin_shards_with_their_platforms(
    in_torch: Any,
    run: Any,
    other_tokenizer: Path,
    cppmill: Any,
    documents: Any,
    page: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    cppmill("shards", run.out, "--out", "out/demo-bin", *SPLIT)
    flags = json.loads(cppmill("flags", "--for", "nanogpt", "--tokenizer", run.out / "tokenizer", "--json").stdout)
    data = tmp_path / "data/cpp"
    data.mkdir(parents=True)
    for note in flags["notes"]:
        for command in re.findall(r"(?:python -c .+|for split .+; done)$", note):
            command = command.replace("OUT", "out/demo-bin").replace("DATASET", "cpp")
            subprocess.run(["bash", "-euc", command], check=True)
    size = pickle.loads((data / "meta.pkl").read_bytes())["vocab_size"]
    assert size >= run.receipt["tokenizer"]["vocab_size"]
    names = {"block_size": BLOCK_SIZE, "batch_size": BATCH_SIZE, "vocab_size": size}
    code = page["nanoGPT"].replace('"out/demo"', f'"{run.out}"')
    code = re.sub(r'"(data/|out/|ckpt)', rf'"{tmp_path}/\1', code)
    found = in_torch(programs.train_as_page, code, names, STEPS)
    assert sum(found["losses"][-3:]) < sum(found["losses"][:3]) - 3
    texts = {tuple(ids[:-1]): bag for ids, bag in documents.items()}
    tokens, used = (data / "train.bin").read_bytes(), set()
    bos = next(iter(texts))[0]
    for xs, ys, bags in found["drawn"]:
        for x, y, platforms in zip(xs, ys, bags, strict=True):
            assert x[1:] == y[:-1]
            assert b"".join(token.to_bytes(2, "little") for token in [*x, y[-1]]) in tokens
            starts = sorted({0, *(place for place, token in enumerate(x) if token == bos), len(x)})
            for start, end in pairwise(starts):
                check_part(x[start:end], platforms[start:end], texts)
                used |= set(platforms[start])
    assert set(found["changed"]) == used - {0} != set()
    again = in_torch(programs.train_as_page, code, names, 3)
    assert again["losses"][0] < found["losses"][0] - 1
    checkpoint = tmp_path / "ckpt.pt"
    assert in_torch(programs.check_vocab, checkpoint, [run.out, run.out / "tokenizer"]) == ["", ""]
    [said] = in_torch(programs.check_vocab, checkpoint, [other_tokenizer])
    assert "of tokenizer" in said
    with pytest.raises(Exception, match="of tokenizer"):
        in_torch(programs.train_as_page, code.replace(str(run.out), str(other_tokenizer)), names, 1)
