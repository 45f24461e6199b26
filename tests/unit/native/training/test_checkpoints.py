from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import transformers
from cppmill_core import Tokenizer, VocabStamp, assert_vocab, read_stamp, stamp

SIZE = 300
MINE = VocabStamp(tokenizer="ab" * 32, revision="1.0", vocab_size=SIZE)
OTHER = VocabStamp(tokenizer="cd" * 32, revision="", vocab_size=SIZE)
RECEIPT = {"tokenizer": {"digest": MINE.tokenizer, "revision": "1.0", "vocab_size": SIZE}}


def tensors(rows: int = SIZE) -> dict[str, np.ndarray]:
    return {
        "model.embed_tokens.weight": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4),
        "model.norm.weight": np.ones(4, np.float16),
    }


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(tensors(), path, metadata={"format": "pt"})
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    transformers.GPT2Config(vocab_size=SIZE + 84).save_pretrained(tmp_path)
    return tmp_path / "config.json"


@pytest.fixture
def torch_file(tmp_path: Path) -> Path:
    path = tmp_path / "ckpt.pt"
    path.write_bytes(b"PK\x03\x04")
    return path


def as_dict(request: pytest.FixtureRequest) -> Any:
    return {"model": tensors(), "step": 3}


KINDS: dict[str, Callable[[pytest.FixtureRequest], Any]] = {
    "safetensors": lambda request: request.getfixturevalue("weights"),
    "config.json": lambda request: request.getfixturevalue("config"),
    "torch": lambda request: request.getfixturevalue("torch_file"),
    "dict": as_dict,
}


@pytest.fixture(params=KINDS)
def checkpoint(request: pytest.FixtureRequest) -> Any:
    """A checkpoint of each kind, without a stamp."""
    return KINDS[request.param](request)


def test_a_stamp_is_read_back_and_takes_the_place_of_an_older_one(checkpoint: Any) -> None:
    assert read_stamp(checkpoint) is None
    assert stamp(checkpoint, OTHER) == read_stamp(checkpoint) == OTHER
    assert stamp(checkpoint, MINE) == read_stamp(checkpoint) == MINE
    assert_vocab(checkpoint, MINE)


def test_another_tokenizer_is_refused_with_both_names(checkpoint: Any) -> None:
    stamp(checkpoint, OTHER)
    both = rf"of tokenizer {OTHER.tokenizer} \(no revision, 300 ids\), but .* is of {MINE.tokenizer} \(1\.0, 300 ids\)"
    with pytest.raises(cppmill_core.VocabularyError, match=both):
        assert_vocab(checkpoint, MINE)


def test_a_checkpoint_without_a_stamp_is_refused(checkpoint: Any) -> None:
    with pytest.raises(cppmill_core.VocabularyError, match="no stamp of a tokenizer; write one"):
        assert_vocab(checkpoint, MINE)


def test_stamping_leaves_weights_as_they_are(weights: Path) -> None:
    for source in (OTHER, MINE):
        stamp(weights, source)
        found = safetensors.numpy.load_file(weights)
        assert {name: value.dtype for name, value in found.items()} == {n: v.dtype for n, v in tensors().items()}
        assert all(np.array_equal(found[name], value) for name, value in tensors().items())
    with safetensors.safe_open(weights, "numpy") as file:
        assert file.metadata() == {
            "format": "pt",
            "cppmill.tokenizer": MINE.tokenizer,
            "cppmill.revision": "1.0",
            "cppmill.vocab_size": "300",
        }
    assert [path.name for path in weights.parent.iterdir()] == [weights.name]


def test_transformers_keeps_the_stamp_of_a_configuration(config: Path, tmp_path: Path) -> None:
    stamp(config, MINE)
    transformers.AutoConfig.from_pretrained(config.parent).save_pretrained(tmp_path / "trained")
    assert_vocab(tmp_path / "trained", MINE)


def test_a_folder_is_stamped_and_checked_whole(config: Path, weights: Path) -> None:
    stamp(config.parent, MINE)
    assert read_stamp(config) == read_stamp(weights) == read_stamp(config.parent) == MINE
    assert_vocab(config.parent, MINE)
    stamp(weights, OTHER)
    with pytest.raises(cppmill_core.VocabularyError, match=rf"^{weights}: of tokenizer {OTHER.tokenizer}"):
        assert_vocab(config.parent, MINE)


class TestSizes:
    """Embeddings may be padded, but need at least as many rows as there are ids."""

    def test_rows_of_weights(self, weights: Path) -> None:
        stamp(weights, MINE)
        safetensors.numpy.save_file(tensors(SIZE + 84), weights)
        stamp(weights, MINE)
        assert_vocab(weights, MINE)
        safetensors.numpy.save_file(tensors(SIZE - 1), weights)
        stamp(weights, MINE)
        said = r"model\.embed_tokens\.weight has 299 rows, fewer than the 300 ids of the VocabStamp"
        with pytest.raises(cppmill_core.VocabularyError, match=said):
            assert_vocab(weights, MINE)

    @pytest.mark.parametrize("name", ["transformer.wte.weight", "lm_head.weight", "tok_emb.weight"])
    def test_rows_of_a_dict(self, name: str) -> None:
        state: dict[str, Any] = {"model": {name: np.zeros((299, 4))}, "optimizer": {"state": {0: np.zeros(2)}}}
        stamp(state, MINE)
        with pytest.raises(cppmill_core.VocabularyError, match=f"{name} has 299 rows"):
            assert_vocab(state, MINE)
        state["model"][name] = np.zeros((384, 4))
        assert_vocab(state, MINE)

    def test_a_configuration(self, config: Path) -> None:
        transformers.GPT2Config(vocab_size=256).save_pretrained(config.parent)
        stamp(config, MINE)
        with pytest.raises(cppmill_core.VocabularyError, match="vocab_size has 256 rows, fewer than the 300 ids"):
            assert_vocab(config, MINE)

    @pytest.mark.parametrize(
        ("found", "name"),
        [
            ({"vocab_size": 100}, "vocab_size"),
            ({"vocab_size": "100"}, "vocab_size"),
            ({"vocab_size": 100.0}, "vocab_size"),
            ({"model_args": {"vocab_size": 100}}, "model_args.vocab_size"),
            ({"text_config": {"vocab_size": 100}}, "text_config.vocab_size"),
            ({"vocab_size": 300, "text_config": {"vocab_size": "100"}}, "text_config.vocab_size"),
            ({"args": argparse.Namespace(padded_vocab_size=100)}, "args.padded_vocab_size"),
        ],
        ids=str,
    )
    def test_a_size_in_any_part_of_a_configuration(self, found: dict[str, Any], name: str, tmp_path: Path) -> None:
        said = rf"{name} has 100 rows, fewer than the 300 ids of the VocabStamp"
        stamp(found, MINE)
        with pytest.raises(cppmill_core.VocabularyError, match=said):
            assert_vocab(found, MINE)
        if "args" not in found:
            (tmp_path / "config.json").write_text(json.dumps(found))
            with pytest.raises(cppmill_core.VocabularyError, match=rf"config\.json: {said}"):
                assert_vocab(tmp_path / "config.json", MINE)

    def test_a_size_that_is_not_a_number(self) -> None:
        found: dict[str, Any] = {"vocab_size": "many"}
        stamp(found, MINE)
        with pytest.raises(
            cppmill_core.VocabularyError, match="vocab_size is not a number, and the VocabStamp has 300 ids"
        ):
            assert_vocab(found, MINE)

    def test_sizes_that_are_enough_or_of_something_else(self) -> None:
        found: dict[str, Any] = {
            "vocab_size": "384",
            "text_config": {"vocab_size": 300, "padded_vocab_size": None, "type_vocab_size": 2},
            "audio_config": {"vocab_size": 100},
            "model": {
                "embeddings.position.embedding.weight": np.zeros((64, 4)),
                "decoder.weight": np.zeros((8, 4, 3, 3)),
            },
        }
        stamp(found, MINE)
        assert_vocab(found, MINE)

    @pytest.mark.parametrize(
        "name", ["embed.weight", "embeddings.weight", "backbone.embedding.weight", "cls.predictions.decoder.weight"]
    )
    def test_rows_under_other_usual_names(self, name: str, weights: Path) -> None:
        state: dict[str, Any] = {name: np.zeros((299, 4), np.float32)}
        safetensors.numpy.save_file(state, weights)
        stamp(state, MINE)
        stamp(weights, MINE)
        for checkpoint in (state, weights):
            with pytest.raises(cppmill_core.VocabularyError, match=f"{name} has 299 rows, fewer than the 300 ids"):
                assert_vocab(checkpoint, MINE)

    def test_a_stamp_of_another_size(self) -> None:
        state: dict[str, Any] = {}
        stamp(state, VocabStamp(tokenizer=MINE.tokenizer, revision="1.0", vocab_size=299))
        with pytest.raises(cppmill_core.VocabularyError, match="stamped with 299 ids, but .* has 300"):
            assert_vocab(state, MINE)


class TestSources:
    """What a checkpoint is compared with."""

    def test_receipts_and_runs(self, tmp_path: Path) -> None:
        (tmp_path / "receipt.json").write_text(json.dumps(RECEIPT))
        for source in (RECEIPT, tmp_path, tmp_path / "receipt.json", str(tmp_path / "receipt.json"), MINE):
            assert VocabStamp.of(source) == MINE

    def test_tokenizers(self, directory: Path, tokenizer: Tokenizer) -> None:
        found = VocabStamp.of(tokenizer)
        assert found == VocabStamp.of(directory)
        assert (found.tokenizer, found.vocab_size) == (tokenizer.digest, tokenizer.vocab_size)
        state: dict[str, Any] = {}
        assert stamp(state, tokenizer, revision="2.0").revision == "2.0"
        assert_vocab(state, directory)

    def test_a_failure_names_the_file_of_the_receipt(self, tmp_path: Path) -> None:
        (tmp_path / "receipt.json").write_text(json.dumps(RECEIPT))
        state: dict[str, Any] = {}
        stamp(state, OTHER)
        with pytest.raises(cppmill_core.VocabularyError, match=rf"but {tmp_path}/receipt\.json is of {MINE.tokenizer}"):
            assert_vocab(state, tmp_path / "receipt.json")

    def test_other_sources_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match="neither a receipt nor a tokenizer"):
            VocabStamp.of(3)
        for content in ("{}", "[]", "no"):
            (tmp_path / "receipt.json").write_text(content)
            with pytest.raises(cppmill_core.CorruptDataError, match=r"receipt\.json: (not|JSON)"):
                VocabStamp.of(tmp_path)
        with pytest.raises(FileNotFoundError):
            VocabStamp.of(tmp_path / "nowhere")


class TestDamaged:
    """Files whose content does not fit their names."""

    @pytest.mark.parametrize("content", [b"", b"\x01", b"\xff" * 16, b"\x02" + b"\0" * 7 + b"[]", b"\x09" + b"\0" * 9])
    def test_weights(self, weights: Path, content: bytes) -> None:
        weights.write_bytes(content)
        with pytest.raises(cppmill_core.CorruptDataError, match=r"model\.safetensors: "):
            stamp(weights, MINE)
        assert weights.read_bytes() == content

    def test_stamps(self, config: Path) -> None:
        config.write_text(json.dumps({"cppmill": {"tokenizer": 1}}))
        with pytest.raises(cppmill_core.CorruptDataError, match="a stamp that cannot be read .* stamp it again"):
            read_stamp(config)

    def test_nothing_and_folders_without_a_configuration(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="no such checkpoint"):
            stamp(tmp_path / "nothing.pt", MINE)
        with pytest.raises(cppmill_core.InvalidInputError, match=r"a folder without config\.json"):
            assert_vocab(tmp_path, MINE)


def test_neither_torch_nor_safetensors_is_needed() -> None:
    script = "import sys, cppmill_core; assert not {'torch', 'safetensors', 'transformers'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_cut_file_of_weights_is_refused(weights: Path) -> None:
    stamp(weights, MINE)
    content = weights.read_bytes()
    for cut in (1, len(content) // 2):
        weights.write_bytes(content[:-cut])
        with pytest.raises(cppmill_core.CorruptDataError, match=r"model\.safetensors: damaged: model\..* ends at byte"):
            assert_vocab(weights, MINE)


@pytest.mark.parametrize("tensor", [{"shape": [9]}, {"data_offsets": [0, 1]}, {"shape": 4, "data_offsets": [0, 1]}, 4])
def test_a_header_without_places_is_refused(weights: Path, tensor: Any) -> None:
    header = json.dumps({"lm_head.weight": tensor}).encode()
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    with pytest.raises(cppmill_core.CorruptDataError, match=r"damaged: lm_head\.weight has no shape or no place"):
        read_stamp(weights)


def test_a_header_with_a_tensor_twice_is_refused(weights: Path) -> None:
    tensors = [f'"lm_head.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{at},{at + 1}]}}' for at in range(2)]
    header = f"{{{','.join(tensors)}}}".encode()
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(2))
    with pytest.raises(cppmill_core.CorruptDataError, match="'lm_head.weight' is there twice"):
        read_stamp(weights)
