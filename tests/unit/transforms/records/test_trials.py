"""The receipt of a trial: what it says of its files, and what the figures say too."""

import pytest

from schemas.digests import canonical_json, sha256_json
from transforms.records.trials import RESULT, make_trial_receipt, publish_trial_receipt, verify_trial
from transforms.storage.folder import OutputFolder

NAMES = ["ours", "other"]
TOKENIZERS = [{"name": name, "digest": 64 * "a", "vocab_size": 10, "library": "cppmill"} for name in NAMES]
FIGURES = {
    "flops": 1e9,
    "tokenizers": [{**one, "bits_per_byte": 2.5} for one in TOKENIZERS],
    "cells": [{"tokenizer": name, "seed": seed, "points": []} for seed in range(2) for name in NAMES],
}
FACTS = {
    **{name: {"corpus": 64 * "b", "documents": 3, "bytes": 5, "not_utf_8": 0} for name in ("text", "held_out")},
    **{"options": {}, "code": {}, "device": "cpu", "threads": 1, "flops": 1e9, "tokenizers": TOKENIZERS},
}


def write_trial(folder, *, figures=FIGURES, data=None, more=None, change_files=lambda files: files):
    """Write a trial, and return what is wrong with it."""
    out = OutputFolder(folder)
    files = [out.publish_bytes(RESULT, data or canonical_json(figures)), out.publish_bytes("trial.svg", b"<svg/>")]
    receipt = make_trial_receipt({**FACTS, **(more or {})}, files)
    del receipt["digest"]
    receipt["files"] = change_files(receipt["files"])
    publish_trial_receipt(out, {**receipt, "digest": sha256_json(receipt)})
    return verify_trial(out)


def test_a_trial_is_proved(tmp_path):
    assert write_trial(tmp_path) == []


FORGED = {
    "size": ({"change_files": lambda files: [{**files[0], "num_bytes": 1}, files[1]]}, "have other sizes"),
    "rows": ({"change_files": lambda files: [{**files[0], "rows": 1}, files[1]]}, "have other sizes"),
    "a file twice": ({"change_files": lambda files: [{**files[0], "sha256": 64 * "0"}, *files]}, "name each once"),
    "a key": ({"more": {"note": 1}}, "its keys are"),
    "work": ({"more": {"flops": 2e9}}, "its flops are 1000000000"),
    "tokenizers": ({"more": {"tokenizers": TOKENIZERS[::-1]}}, "its tokenizers are not those of the receipt"),
    "cells": ({"figures": {**FIGURES, "cells": FIGURES["cells"][1:]}}, "its cells are not one for each"),
    "a key twice": ({"data": b'{"flops":1,' + canonical_json(FIGURES)[1:]}, "it is not canonical JSON"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_trial_that_contradicts_itself_is_found(tmp_path, name):
    given, message = FORGED[name]
    assert message in " ".join(write_trial(tmp_path, **given))
