from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cppmill_core
import numpy as np
import pytest
from cppmill_core.working_set import FORMAT, WorkingSet, ids_digest, logit_mask, torch_logit_mask

IDS = [1, 5, 9]
COVERAGE = {"asked": 0.5, "reached": 0.5, "tokens": 4, "covered_tokens": 2}


def write(path: Path, **changes: Any) -> Path:
    value = {
        "format": FORMAT,
        "ids": IDS,
        "ids_sha256": ids_digest(IDS),
        "tokenizer": {"digest": "ab" * 32, "vocab_size": 12},
        "coverage": COVERAGE,
    }
    path.write_text(json.dumps(value | changes))
    return path


def test_a_mask_allows_its_ids_and_nothing_else() -> None:
    mask = logit_mask([3, 0], 5)
    assert mask.dtype == np.float32
    assert mask.tolist() == [0.0, -np.inf, -np.inf, 0.0, -np.inf]


def test_masked_logits_sample_only_what_is_allowed() -> None:
    logits = np.random.default_rng(3).normal(size=12).astype(np.float32)
    chances = np.exp(logits + logit_mask(IDS, 12))
    assert np.flatnonzero(chances).tolist() == IDS
    assert int(np.argmax(chances)) == max(IDS, key=lambda i: logits[i])


@pytest.mark.parametrize(("ids", "said"), [([], "no ids"), ([12], "id 12: not below"), ([3, -1], "id -1: not below")])
def test_ids_that_make_no_mask_are_refused(ids: list[int], said: str) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=said):
        logit_mask(ids, 12)


def test_a_working_set_is_read_back_and_padded_to_the_logits(tmp_path: Path) -> None:
    found = WorkingSet.load(write(tmp_path / "set.json"))
    assert (found.ids, found.vocab_size, found.coverage) == ((1, 5, 9), 12, 0.5)
    assert found.mask().shape == (12,)
    assert np.isneginf(found.mask(16)[12:]).all()


@pytest.mark.parametrize(
    "changes",
    [{"format": "other"}, {"ids": [1, 5]}, {"ids": None}, {"tokenizer": {}}, {"ids_sha256": None}],
    ids=str,
)
def test_a_file_that_is_not_a_working_set_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match=r"set\.json: not a working set .*; write it again"):
        WorkingSet.load(write(tmp_path / "set.json", **changes))


@pytest.mark.parametrize(
    "ids", [[1, 5, 12], [5, 1], [1, 1], [-1, 5], [1, 5.5], [True, 5], [], [1 << 40], "abc"], ids=str
)
def test_ids_that_no_tokenizer_gives_are_refused(tmp_path: Path, ids: Any) -> None:
    whole = [int(id_) & 0xFFFFFFFF for id_ in ids] if isinstance(ids, list) else []
    path = write(tmp_path / "set.json", ids=ids, ids_sha256=ids_digest(whole))
    with pytest.raises(cppmill_core.CorruptDataError, match="not a working set"):
        WorkingSet.load(path)


@pytest.mark.parametrize("reached", [1.5, -0.1, "all", True, None])
def test_a_coverage_that_is_no_share_is_refused(tmp_path: Path, reached: object) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="a coverage of"):
        WorkingSet.load(write(tmp_path / "set.json", coverage={**COVERAGE, "reached": reached}))


@pytest.mark.parametrize(
    "false", [{"covered_tokens": 3}, {"tokens": 5}, {"covered_tokens": 5}, {"tokens": True}, {"asked": 0.75}], ids=str
)
def test_a_coverage_that_its_numbers_do_not_give_is_refused(tmp_path: Path, false: dict[str, object]) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="cover"):
        WorkingSet.load(write(tmp_path / "set.json", coverage={**COVERAGE, **false}))


def test_a_key_that_no_working_set_has_and_one_that_is_there_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(cppmill_core.CorruptDataError, match="the key 'extra'"):
        WorkingSet.load(write(tmp_path / "set.json", extra=1))
    text = write(tmp_path / "set.json").read_text()
    (tmp_path / "set.json").write_text(text.replace("{", '{"ids": [2], ', 1))
    with pytest.raises(cppmill_core.CorruptDataError, match="the key 'ids' is there twice"):
        WorkingSet.load(tmp_path / "set.json")


def test_a_working_set_without_a_byte_of_its_tokenizer_is_refused(tmp_path: Path) -> None:
    def control_id(name: str) -> int:
        raise cppmill_core.InvalidInputError(name)

    texts = {1: b"a", 5: b"b", 9: b"ab", 10: b"c"}
    tokenizer: Any = SimpleNamespace(digest="ab" * 32, vocab_size=12, token_bytes=texts.get, control_id=control_id)
    with pytest.raises(cppmill_core.CorruptDataError, match="it lacks the id 10 of b'c', which every working set has"):
        WorkingSet.load(write(tmp_path / "set.json"), tokenizer=tokenizer)
    del texts[10]
    assert WorkingSet.load(write(tmp_path / "set.json"), tokenizer=tokenizer).ids == (1, 5, 9)


def test_a_working_set_of_another_size_than_its_tokenizer_is_refused(tmp_path: Path) -> None:
    tokenizer: Any = SimpleNamespace(digest="ab" * 32, vocab_size=13)
    with pytest.raises(cppmill_core.CorruptDataError, match="it says 12 ids, the tokenizer has 13"):
        WorkingSet.load(write(tmp_path / "set.json"), tokenizer=tokenizer)


def test_a_deep_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set.json").write_text("[" * 100_000)
    with pytest.raises(cppmill_core.CorruptDataError, match="not a working set"):
        WorkingSet.load(tmp_path / "set.json")


def test_torch_is_imported_only_for_its_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys, cppmill_core.working_set; assert not {'torch', 'apache_beam'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="needs torch: install it, or use logit_mask"):
        torch_logit_mask(IDS, 12)
