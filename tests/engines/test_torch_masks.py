"""Masks in torch: the bias is in every logit, frozen rows stay bit by bit, and receipts prove it; positions too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pytest
from cppmill_core import VocabStamp
from cppmill_core.masks import Mask
from cppmill_core.masks.receipts import make_mask_receipt, verify_mask_receipt
from cppmill_core.positions import read_position

from tests.engines import torch_programs as programs

TOKENIZER = "ab" * 32
STAMP = VocabStamp(tokenizer=TOKENIZER, revision="", vocab_size=programs.IDS)
FROZEN = (0, 5, 6, 39)


def mask_of(bias: float) -> Mask:
    biases = np.zeros(programs.IDS, np.float32)
    biases[10:20] = bias
    return Mask(biases=biases, frozen=FROZEN, tokenizer=TOKENIZER)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("bias", [-np.inf, -2.7], ids=["hard", "soft"])
def test_a_model_adds_the_bias_to_its_logits(in_torch: Any, bias: float, dtype: str) -> None:
    found = in_torch(programs.compare_logits, mask_of(bias), dtype)
    assert found == (True, True, ["lm_head.logit_mask.bias"])


def test_a_hard_mask_forbids_its_ids_and_padding_and_a_soft_one_does_not(in_torch: Any) -> None:
    hard, soft = (in_torch(programs.sample_masked, mask_of(bias), 20_000) for bias in (-np.inf, -2.0))
    assert hard == [number for number in range(programs.IDS) if not 10 <= number < 20]
    assert soft == list(range(programs.PADDED))


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "apart"])
@pytest.mark.parametrize("optimizer", ["AdamW", "SGD", "Adam", "RMSprop"])
def test_frozen_rows_stay_and_the_receipt_proves_it(in_torch: Any, tmp_path: Path, optimizer: str, tied: bool) -> None:
    mask = mask_of(-2.7)
    found = in_torch(programs.train_frozen, tmp_path, mask, optimizer, 5, tied=tied, freeze=True)
    assert found == {"frozen rows moved": False, "all others moved": True}
    base, tuned = (tmp_path / f"{name}.safetensors" for name in ("base", "tuned"))
    receipt = make_mask_receipt(tuned, mask, STAMP, base=base)
    assert len(receipt["frozen"]) == (1 if tied else 2)
    assert len(receipt["bias"]) == 1
    verify_mask_receipt(receipt, tuned, mask, STAMP)
    with pytest.raises(cppmill_core.VocabularyError, match="checkpoint is"):
        verify_mask_receipt(receipt, base, mask, STAMP)


def test_without_the_freeze_weight_decay_moves_every_row_and_there_is_no_receipt(in_torch: Any, tmp_path: Path) -> None:
    mask = mask_of(-np.inf)
    found = in_torch(programs.train_frozen, tmp_path, mask, "AdamW", 3, tied=False, freeze=False)
    assert found == {"frozen rows moved": True, "all others moved": True}
    with pytest.raises(cppmill_core.VocabularyError, match="differ from those"):
        make_mask_receipt(tmp_path / "tuned.safetensors", mask, STAMP, base=tmp_path / "base.safetensors")


def test_rows_learn_again_after_the_freeze(in_torch: Any) -> None:
    assert in_torch(programs.thaw, mask_of(-1.0)) == (False, True)


@pytest.mark.parametrize(("ids", "said"), [([], "no ids"), ([3, 48], "ids 3 to 48"), ([-1], "ids -1 to -1")])
def test_ids_without_a_row_are_refused(in_torch: Any, ids: list[int], said: str) -> None:
    assert in_torch(programs.refuse_ids, ids) == f"{said}: the parameter has 48 rows"


@pytest.mark.parametrize("workers", [0, 2])
def test_the_position_in_a_checkpoint_of_torch_is_read_without_torch(
    in_torch: Any, shards: Path, tmp_path: Path, workers: int
) -> None:
    state = in_torch(programs.save_checkpoint, tmp_path, shards, 5, workers)
    assert read_position(tmp_path / "loader.pt") == state
    assert read_position(tmp_path / "stateful.pt") == state
