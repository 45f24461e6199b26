"""`cppmill cursors`: the table and the JSON say the same, and what has no stable prefix is refused."""

from __future__ import annotations

import json

from sentencepiece import SentencePieceTrainer


def test_the_command_measures_each_kind_for_each_tokenizer(run, cppmill):
    tokenizer = run.out / "tokenizer"
    command = ["cursors", f"one={tokenizer}", f"two={tokenizer}", "--on", run.out, "--seed", 3]
    records = [json.loads(line) for line in cppmill(*command, "--json").stdout.splitlines()]
    assert [(found["tokenizer"], found["cursor"]) for found in records] == [
        (name, kind) for name in ("one", "two") for kind in ("anywhere", "in a name", "line end")
    ]
    for one, two in zip(records[:3], records[3:], strict=True):
        assert {**one, "tokenizer": "two"} == two
        assert one["cursors"] <= run.receipt["dataset"]["documents"]
        assert 0 < one["same"] <= one["on_border"] < 1
        assert one["changed_ids"]["most"] <= one["dropped_ids"]["most"]
    table = cppmill(*command).stdout.splitlines()
    legend = [line.partition(":")[0] for line in table[1 + len(records) :]]
    assert legend == ["changed ids", "dropped ids and bytes", "numbers in these columns"]
    for line, found in zip(table[1:], records, strict=False):
        assert f"{found['cursors']:,}" in line
        assert f"{found['on_border']:.2%}" in line


def test_a_tokenizer_without_a_stable_prefix_is_refused(run, cppmill, tmp_path):
    text = (run.sources / "numpy").rglob("*.h")
    options = {"vocab_size": 400, "byte_fallback": True, "normalization_rule_name": "identity", "minloglevel": 2}
    SentencePieceTrainer.train(
        sentence_iterator=iter(next(text).read_text().splitlines()),
        model_prefix=str(tmp_path / "other"),
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        **options,
    )
    cppmill("adopt", tmp_path / "other.model", "--out", tmp_path / "adopted")
    done = cppmill("cursors", tmp_path / "adopted", "--on", run.out, check=False)
    assert done.returncode == 2
    assert "its stable prefix is not known; give a byte-level BPE" in done.stderr
