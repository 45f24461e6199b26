"""Masks are what they were made of, and their receipts hold only for checkpoints that they were applied to."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cppmill_core
import numpy as np
import pytest
import safetensors.numpy
from cppmill_core import VocabStamp, stamp
from cppmill_core.masks import Mask
from cppmill_core.masks.receipts import make_mask_receipt, verify_mask_receipt

SIZE, WIDTH = 12, 4
STAMP = VocabStamp(tokenizer="ab" * 32, revision="", vocab_size=SIZE)
FROZEN = (2, 3, 7)


def mask_of(frozen: tuple[int, ...] = FROZEN, **biases: float) -> Mask:
    values = np.zeros(SIZE, np.float32)
    for name, bias in biases.items():
        values[int(name.removeprefix("id"))] = bias
    return Mask(biases=values, frozen=frozen, tokenizer=STAMP.tokenizer)


HARD, SOFT = mask_of(id1=-np.inf, id2=-np.inf, id5=-np.inf), mask_of(id1=-2.3, id2=-2.3, id9=0.7)


@pytest.mark.parametrize("mask", [HARD, SOFT, mask_of()], ids=["hard", "soft", "frozen"])
def test_a_mask_is_read_back(tmp_path: Path, mask: Mask) -> None:
    (tmp_path / "mask.json").write_text(json.dumps(mask.to_json(), allow_nan=False))
    found = Mask.load(tmp_path / "mask.json", tokenizer=STAMP.tokenizer)
    assert np.array_equal(found.biases, mask.biases)
    assert (found.frozen, found.digest) == (FROZEN, mask.digest)
    with pytest.raises(cppmill_core.InvalidInputError, match=f"not of {'cd' * 32}; write one for it"):
        Mask.load(tmp_path / "mask.json", tokenizer="cd" * 32)


def test_the_digest_is_of_tokenizer_biases_and_frozen_ids() -> None:
    others = [HARD, SOFT, mask_of(), mask_of((2, 3)), Mask(biases=SOFT.biases, frozen=FROZEN, tokenizer="cd" * 32)]
    assert len({mask.digest for mask in others}) == len(others)
    assert mask_of(id1=-2.3, id2=-2.3, id9=0.7).digest == SOFT.digest


@pytest.mark.parametrize(
    "changes", [{"format": "other"}, {"frozen": [[2, 3]]}, {"biases": [[1, 1, -1]]}, {"tokenizer": {}}, {"sha256": ""}]
)
def test_a_file_that_is_not_a_mask_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "mask.json").write_text(json.dumps(SOFT.to_json() | changes))
    with pytest.raises(cppmill_core.CorruptDataError, match=r"mask\.json: not a mask .*; write it again"):
        Mask.load(tmp_path / "mask.json")


def reseal(value: dict[str, Any]) -> dict[str, Any]:
    """Make the digest of a mask's values true again, whatever they say."""
    size, biases = value["tokenizer"]["vocab_size"], np.zeros(SIZE * 4, np.float32)
    for first, last, bias in value["biases"]:
        biases[first : last + 1] = -np.inf if bias is None else bias
    frozen = [number for first, last in value["frozen"] for number in range(first, last + 1)]
    parts = (biases[:size].astype("<f4"), np.asarray(frozen, "<i8").astype("<u4"))
    digest = bytes.fromhex(value["tokenizer"]["digest"])
    return value | {"sha256": hashlib.sha256(digest + b"".join(part.tobytes() for part in parts)).hexdigest()}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"biases": [[1, 12, -2.0]]}, "ids 1 to 12 after those below 0, of 12"),
        ({"biases": [[-3, -2, -2.0]]}, "ids -3 to -2"),
        ({"biases": [[1, 2, -2.0], [2, 3, -1.0]]}, "ids 2 to 3 after those below 3"),
        ({"biases": [[5, 4, -2.0]]}, "ids 5 to 4"),
        ({"biases": [[1, 2, True]]}, "the bias True"),
        ({"biases": [[1, 2, "-2"]]}, "the bias '-2'"),
        ({"biases": [[1, 1, -2.0], [2, 2, -2.0]]}, "not in the order of a mask"),
        ({"biases": [[1, 1, 0.0]]}, "not in the order of a mask"),
        ({"frozen": [[2, 12]]}, "ids 2 to 12"),
        ({"frozen": [[-2, -1]]}, "ids -2 to -1"),
        ({"frozen": [[2, 3], [3, 4]]}, "ids 3 to 4 after those below 4"),
        ({"parts": 5}, "not a mask"),
        ({"note": 1}, "values that no mask has"),
        ({"tokenizer": {"digest": "AB" * 32, "vocab_size": SIZE}}, "the tokenizer 'ABAB"),
        ({"tokenizer": {"digest": "ab" * 32, "vocab_size": True}}, "True ids"),
    ],
    ids=str,
)
def test_a_mask_with_a_true_digest_of_false_values_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    (tmp_path / "mask.json").write_text(json.dumps(reseal(SOFT.to_json() | changes)))
    with pytest.raises(cppmill_core.CorruptDataError, match=said):
        Mask.load(tmp_path / "mask.json")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        json.dumps(SOFT.to_json() | {"frozen": [[0, 1 << 60]]}),
        json.dumps(SOFT.to_json() | {"tokenizer": {"digest": "ab" * 32, "vocab_size": 10**12}}),
    ],
    ids=["deep", "many ids", "large vocabulary"],
)
def test_a_mask_that_would_take_all_memory_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "mask.json").write_text(text)
    with pytest.raises(cppmill_core.CorruptDataError, match="not a mask"):
        Mask.load(tmp_path / "mask.json")


@pytest.mark.parametrize("size", [SIZE - 2, SIZE + 2])
def test_a_mask_of_another_size_than_its_tokenizer_is_refused(tmp_path: Path, size: int) -> None:
    tokenizer: Any = SimpleNamespace(digest=STAMP.tokenizer, vocab_size=SIZE)
    value = SOFT.to_json() | {"tokenizer": {"digest": STAMP.tokenizer, "vocab_size": size}}
    (tmp_path / "mask.json").write_text(json.dumps(reseal(value)))
    with pytest.raises(cppmill_core.CorruptDataError, match=f"it says {size} ids, the tokenizer has 12"):
        Mask.load(tmp_path / "mask.json", tokenizer=tokenizer)


def test_padding_is_forbidden_where_ids_are() -> None:
    assert np.isneginf(HARD.bias(SIZE + 3)[SIZE:]).all()
    assert SOFT.bias(SIZE + 3)[SIZE:].tolist() == [0, 0, 0]
    with pytest.raises(cppmill_core.InvalidInputError, match="size = 11: the tokenizer has 12 ids"):
        HARD.bias(SIZE - 1)


@pytest.mark.parametrize("bias", [np.inf, np.nan])
def test_biases_that_spoil_logits_are_refused(bias: float) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="a bias is inf or not a number"):
        mask_of(id1=bias)
    with pytest.raises(cppmill_core.InvalidInputError, match="every id is forbidden"):
        Mask(biases=np.full(SIZE, -np.inf, np.float32), frozen=(), tokenizer=STAMP.tokenizer)


def save(path: Path, mask: Mask | None = None, moved: tuple[int, ...] = (), dtype: Any = np.float32) -> Path:
    """A checkpoint whose rows differ from the first one's where they moved, and with a mask's bias."""
    rows = np.arange(SIZE * WIDTH, dtype=np.float32).reshape(SIZE, WIDTH).astype(dtype)
    rows[list(moved)] += dtype(1)
    bias = {} if mask is None else {"lm_head.logit_mask.bias": mask.bias().astype(dtype)}
    safetensors.numpy.save_file({"model.embed_tokens.weight": rows, "lm_head.weight": rows * dtype(2), **bias}, path)
    stamp(path, STAMP)
    return path


LEARNED = tuple(number for number in range(SIZE) if number not in FROZEN)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("mask", [HARD, SOFT], ids=["hard", "soft"])
def test_a_receipt_proves_bias_and_frozen_rows(tmp_path: Path, mask: Mask, dtype: Any) -> None:
    base = save(tmp_path / "base.safetensors", dtype=dtype)
    tuned = save(tmp_path / "tuned.safetensors", mask, LEARNED, dtype)
    receipt = json.loads(json.dumps(make_mask_receipt(tuned, mask, STAMP, base=base)))
    assert receipt["mask"] == mask.digest
    assert list(receipt["bias"]) == ["lm_head.logit_mask.bias"]
    assert sorted(receipt["frozen"]) == ["lm_head.weight", "model.embed_tokens.weight"]
    verify_mask_receipt(receipt, tuned, mask, STAMP)


def test_a_checkpoint_whose_index_leads_elsewhere_has_no_receipt(tmp_path: Path) -> None:
    base = save(tmp_path / "base.safetensors")
    (tmp_path / "tuned").mkdir()
    save(tmp_path / "tuned" / "model.safetensors", SOFT, LEARNED)
    (tmp_path / "tuned" / "config.json").write_text("{}")
    stamp(tmp_path / "tuned", STAMP)
    index = tmp_path / "tuned" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": "model.safetensors"}}))
    make_mask_receipt(tmp_path / "tuned", SOFT, STAMP, base=base)
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": "sub/model.safetensors"}}))
    with pytest.raises(cppmill_core.InvalidInputError, match=r"it names sub/.*, which is not beside it"):
        make_mask_receipt(tmp_path / "tuned", SOFT, STAMP, base=base)
    index.write_text("[]")
    with pytest.raises(cppmill_core.CorruptDataError, match=r"index\.json: damaged"):
        make_mask_receipt(tmp_path / "tuned", SOFT, STAMP, base=base)


def test_what_was_not_masked_has_no_receipt(tmp_path: Path) -> None:
    base = save(tmp_path / "base.safetensors")
    thawed = save(tmp_path / "thawed.safetensors", SOFT, (0, 3))
    with pytest.raises(cppmill_core.VocabularyError, match=r"frozen rows of .*tokens\.weight.* differ from those"):
        make_mask_receipt(thawed, SOFT, STAMP, base=base)
    bare = save(tmp_path / "bare.safetensors", None, LEARNED)
    with pytest.raises(cppmill_core.VocabularyError, match=r"no buffer …logit_mask\.bias"):
        make_mask_receipt(bare, SOFT, STAMP, base=base)
    other = save(tmp_path / "other.safetensors", HARD, LEARNED)
    with pytest.raises(cppmill_core.VocabularyError, match="is not the bias of the mask"):
        make_mask_receipt(other, SOFT, STAMP, base=base)
    with pytest.raises(cppmill_core.InvalidInputError, match="the mask freezes ids; name the checkpoint"):
        make_mask_receipt(other, HARD, STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match="but the mask is of"):
        stranger = Mask(biases=HARD.biases, frozen=(), tokenizer="cd" * 32)
        make_mask_receipt(other, stranger, STAMP)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(cppmill_core.CoreError, match="no stamp of a tokenizer"):
        make_mask_receipt(tmp_path, HARD, STAMP, base=base)


def test_rows_of_another_type_are_not_frozen_though_their_bytes_are_the_same(tmp_path: Path) -> None:
    base = save(tmp_path / "base.safetensors", dtype=np.float16)
    tuned = save(tmp_path / "tuned.safetensors", SOFT, LEARNED, np.float16)
    tensors = safetensors.numpy.load_file(tuned)
    tensors |= {name: tensors[name].view(np.int16) for name in ("lm_head.weight", "model.embed_tokens.weight")}
    safetensors.numpy.save_file(tensors, tuned)
    stamp(tuned, STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match=r"frozen rows of .* differ .*in value or in type"):
        make_mask_receipt(tuned, SOFT, STAMP, base=base)


def rename(path: Path, old: str, new: str) -> None:
    tensors = safetensors.numpy.load_file(path)
    tensors[new] = tensors.pop(old)
    safetensors.numpy.save_file(tensors, path)
    stamp(path, STAMP)


def test_a_layer_that_only_one_checkpoint_has_is_refused_with_its_name(tmp_path: Path) -> None:
    base, tuned = save(tmp_path / "base.safetensors"), save(tmp_path / "tuned.safetensors", SOFT, LEARNED)
    rename(tuned, "lm_head.weight", "head_renamed.weight")
    with pytest.raises(cppmill_core.VocabularyError, match=r"missing are lm_head\.weight, additional are none"):
        make_mask_receipt(tuned, SOFT, STAMP, base=base)
    rename(tuned, "head_renamed.weight", "output_layer.weight")
    with pytest.raises(cppmill_core.VocabularyError, match=r"missing are lm_head.weight, additional are output_layer"):
        make_mask_receipt(tuned, SOFT, STAMP, base=base)
    rename(base, "lm_head.weight", "head_renamed.weight")
    with pytest.raises(cppmill_core.VocabularyError, match=r"missing are none, additional are output_layer\.weight"):
        make_mask_receipt(tuned, SOFT, STAMP, base=base)


def test_a_layer_in_two_files_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    base, folder = save(tmp_path / "base.safetensors"), tmp_path / "tuned"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    save(folder / "a.safetensors", SOFT, (0, *FROZEN))
    save(folder / "b.safetensors", SOFT, (0,))
    stamp(folder, STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match=r"b\.safetensors: .*weight is in another file"):
        make_mask_receipt(folder, SOFT, STAMP, base=base)


def test_a_receipt_is_of_one_checkpoint_and_one_mask(tmp_path: Path) -> None:
    base, path = save(tmp_path / "base.safetensors"), tmp_path / "tuned.safetensors"
    receipt = make_mask_receipt(save(path, SOFT, LEARNED), SOFT, STAMP, base=base)
    with pytest.raises(cppmill_core.VocabularyError, match="mask is .*, the receipt says"):
        verify_mask_receipt(receipt, path, mask_of((2,), id1=-2.3, id2=-2.3, id9=0.7), STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match="checkpoint is .*, the receipt says"):
        verify_mask_receipt(receipt, save(path, SOFT, (0,)), SOFT, STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match="frozen is .*, the receipt says"):
        verify_mask_receipt(receipt, save(path, SOFT, (2,)), SOFT, STAMP)
    with pytest.raises(cppmill_core.InvalidInputError, match="'cppmill-mask-receipt-1' is known"):
        verify_mask_receipt(receipt | {"format": "other"}, path, SOFT, STAMP)
    save(path, SOFT, LEARNED)
    with pytest.raises(cppmill_core.InvalidInputError, match="the key 'loss', which no receipt has"):
        verify_mask_receipt(receipt | {"loss": 0.1}, path, SOFT, STAMP)


def test_a_bias_of_whole_numbers_is_none_though_its_bytes_are_those_of_the_mask(tmp_path: Path) -> None:
    base, path = save(tmp_path / "base.safetensors"), save(tmp_path / "tuned.safetensors", SOFT, LEARNED)
    tensors = safetensors.numpy.load_file(path)
    tensors["lm_head.logit_mask.bias"] = tensors["lm_head.logit_mask.bias"].view(np.int32)
    safetensors.numpy.save_file(tensors, path)
    stamp(path, STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match="is of I32; a bias is of F32, F16, BF16"):
        make_mask_receipt(path, SOFT, STAMP, base=base)


def test_a_key_of_a_mask_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(SOFT.to_json()).replace("{", '{"biases": [], ', 1)
    (tmp_path / "mask.json").write_text(text)
    with pytest.raises(cppmill_core.CorruptDataError, match="the key 'biases' is there twice"):
        Mask.load(tmp_path / "mask.json")


def test_torch_is_imported_for_torch_masks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys, cppmill_core.masks.receipts; assert not {'torch', 'safetensors'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"masks\.torch_masks needs torch: install it"):
        __import__("cppmill_core.masks.torch_masks")
