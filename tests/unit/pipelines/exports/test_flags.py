"""The command `flags`: what it prints is what the projects take."""

from __future__ import annotations

import argparse
import json
import math
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from cppmill_core import Tokenizer, assert_vocab, stamp

from pipelines.exports.flags import PROJECTS, Vocabulary, make_flags
from schemas.errors import ConfigError
from transforms.exports.shards.formats import megatron_type

OPTIONS: dict[str, Any] = {"divisible_by": 128, "tensor_parallel": 1, "dtype": "bfloat16"}


@pytest.fixture(scope="session")
def tokenizer(run: Any) -> Path:
    return run.out / "tokenizer"


def megatron_parser() -> argparse.ArgumentParser:
    """As much of Megatron-LM's parser as is about the vocabulary, with its types and defaults."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--tokenizer-type", choices=["HuggingFaceTokenizer", "GPTSentencePieceTokenizer"])
    parser.add_argument("--tokenizer-model")
    parser.add_argument("--vocab-size", type=int)
    parser.add_argument("--make-vocab-size-divisible-by", type=int, default=128)
    parser.add_argument("--tensor-model-parallel-size", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--fp16", action="store_true")
    return parser


def test_megatron_takes_the_flags_and_pads_to_the_same_size(tokenizer: Path, cppmill: Any) -> None:
    done = cppmill("flags", "--for", "megatron", "--tokenizer", tokenizer, "--tensor-parallel", 7)
    found = megatron_parser().parse_args(done.stdout.split())
    loaded = transformers.AutoTokenizer.from_pretrained(found.tokenizer_model)
    assert len(loaded) == found.vocab_size == Tokenizer.from_dir(tokenizer).vocab_size
    multiple = found.make_vocab_size_divisible_by * found.tensor_model_parallel_size
    padded = math.ceil(found.vocab_size / multiple) * multiple
    assert padded > found.vocab_size
    assert f"{found.vocab_size:,} ids, {padded:,} rows of the embedding" in done.stderr
    assert (found.tokenizer_type, found.bf16, found.fp16) == ("HuggingFaceTokenizer", True, False)


def test_transformers_takes_the_flags(tokenizer: Path, cppmill: Any, tmp_path: Path) -> None:
    done = cppmill("flags", "--for", "transformers", "--tokenizer", tokenizer, "--divisible-by", 1000)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--tokenizer_name", "--config_overrides", "--bf16"):
        parser.add_argument(name, required=True)
    found = parser.parse_args(done.stdout.split())
    config = transformers.GPT2Config()
    config.update_from_string(found.config_overrides)
    loaded = transformers.AutoTokenizer.from_pretrained(found.tokenizer_name)
    assert len(loaded) <= config.vocab_size == 13_000
    assert (config.bos_token_id, config.eos_token_id) == (loaded.bos_token_id, loaded.eos_token_id)
    config.save_pretrained(tmp_path)
    stamp(tmp_path, tokenizer)
    assert_vocab(tmp_path, tokenizer)


def test_nanogpt_gets_the_size_from_a_file(tokenizer: Path, cppmill: Any, tmp_path: Path) -> None:
    done = cppmill("flags", "--for", "nanogpt", "--tokenizer", tokenizer, "--dtype", "float16")
    assert done.stdout == "--dtype=float16\n"
    command = re.search(r'python -c "(.*)"', done.stderr)
    assert command is not None
    (tmp_path / "data" / "DATASET").mkdir(parents=True)
    subprocess.run([sys.executable, "-c", command[1]], cwd=tmp_path, check=True)
    meta = pickle.loads((tmp_path / "data" / "DATASET" / "meta.pkl").read_bytes())
    assert meta == {"vocab_size": 12_288}


def test_the_command_for_nanogpt_makes_bare_ids_of_shards(
    tokenizer: Path, run: Any, cppmill: Any, tmp_path: Path
) -> None:
    cut = ("--split-by", "document", "--validation-fraction", 0.3, "--shard-tokens", 20_000)
    cppmill("shards", run.out, "--out", tmp_path / "OUT", *cut)
    done = cppmill("flags", "--for", "nanogpt", "--tokenizer", tokenizer)
    command = re.search(r"for split in .*; done$", done.stderr, re.MULTILINE)
    assert command is not None
    (tmp_path / "data" / "DATASET").mkdir(parents=True)
    subprocess.run(["sh", "-c", command[0]], cwd=tmp_path, check=True)
    for split in ("train", "val"):
        shards = sorted((tmp_path / "OUT" / "shards").glob(f"*_{split}_*.bin"))
        assert len(shards) > 1
        ids = np.memmap(tmp_path / "data" / "DATASET" / f"{split}.bin", dtype=np.uint16, mode="r")
        assert np.array_equal(ids, np.concatenate([np.fromfile(path, "<u2", offset=1024) for path in shards]))


def test_json_has_everything(tokenizer: Path, cppmill: Any) -> None:
    done = cppmill("flags", "--for", "megatron", "--tokenizer", tokenizer, "--json")
    found = json.loads(done.stdout)
    assert found["tokenizer"]["digest"] == Tokenizer.from_dir(tokenizer).digest
    assert (found["padded_vocab_size"], found["token_dtype"]) == (12_288, "uint16")
    assert megatron_parser().parse_args(found["arguments"]).vocab_size == 12_288


@pytest.mark.parametrize(("size", "dtype"), [(65_499, "uint16"), (65_536, "uint16"), (65_537, "int32")])
def test_megatron_gets_the_type_that_shards_are_written_with(size: int, dtype: str, tokenizer: Path) -> None:
    vocabulary = Vocabulary(
        folder=tokenizer, digest="", vocab_size=size, divisible_by=1, tensor_parallel=1, bos=2, eos=3, dtype="float32"
    )
    found = PROJECTS["megatron"](vocabulary)
    assert found.token_dtype == dtype == np.dtype(megatron_type(size)).name
    theirs = "uint16" if size < 65_500 else "int32"
    ours = f"cppmill shards --format megatron writes ids as {dtype}"
    assert found.notes[0].startswith(f"{ours}; Megatron's own tools would write {theirs} ")
    assert vocabulary.padded == size


def test_what_a_project_cannot_use_is_refused(tokenizer: Path, tmp_path: Path) -> None:
    vocabulary = Vocabulary(
        folder=tmp_path, digest="", vocab_size=65_537, divisible_by=1, tensor_parallel=1, bos=2, eos=3, dtype="float32"
    )
    with pytest.raises(ConfigError, match="65,537 ids, and its .bin files hold uint16"):
        PROJECTS["nanogpt"](vocabulary)
    with pytest.raises(ConfigError, match=r"has no tokenizer\.json"):
        PROJECTS["transformers"](vocabulary)


def test_a_sentencepiece_model_has_its_own_type_in_megatron(tokenizer: Path, tmp_path: Path) -> None:
    shutil.copytree(tokenizer, tmp_path / "tokenizer")
    (tmp_path / "tokenizer" / "tokenizer.model").write_bytes(b"")
    _, found = make_flags("megatron", tmp_path / "tokenizer", **OPTIONS)
    parsed = megatron_parser().parse_args(found.arguments)
    assert parsed.tokenizer_type == "GPTSentencePieceTokenizer"
    assert parsed.tokenizer_model == str(tmp_path / "tokenizer" / "tokenizer.model")


@pytest.mark.parametrize(
    ("project", "options", "said"),
    [
        ("gpt", {}, "--for gpt: not known; it takes megatron, nanogpt, transformers"),
        ("megatron", {"dtype": "int8"}, "--dtype int8: not known; it takes bfloat16, float16, float32"),
        ("megatron", {"tensor_parallel": 0}, "--tensor-parallel 0: not allowed"),
    ],
)
def test_wrong_arguments_are_named(project: str, options: dict[str, Any], said: str, tokenizer: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        make_flags(project, tokenizer, **(OPTIONS | options))


def test_a_url_is_refused_as_training_programs_read_a_folder(cppmill: Any) -> None:
    done = cppmill("flags", "--for", "megatron", "--tokenizer", "gs://bucket/out/tokenizer", check=False)
    assert done.returncode == 2
    assert "training programs read a folder of their machine" in " ".join(done.stderr.replace("│", "").split())
