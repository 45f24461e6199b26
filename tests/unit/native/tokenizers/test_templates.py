"""Post-processors: the core takes the templates of <BOS> and <EOS> as they are recorded, and refuses any other."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import pytest
from tokenizers import Tokenizer, processors

Change = Callable[..., cppmill_core.Tokenizer]


@pytest.fixture
def load(directory: Path, tmp_path: Path) -> Change:
    """Load a copy of the directory with this post-processor and, if given, this record of it."""
    copy = shutil.copytree(directory, tmp_path / "copy")

    def change(post_processor: object, recorded: str | None = None) -> cppmill_core.Tokenizer:
        rules = json.loads((directory / "tokenizer.json").read_bytes()) | {"post_processor": post_processor}
        (copy / "tokenizer.json").write_text(json.dumps(rules))
        manifest = json.loads((directory / "manifest.json").read_bytes())
        manifest["files"]["tokenizer.json"] = hashlib.sha256((copy / "tokenizer.json").read_bytes()).hexdigest()
        manifest |= {"hf_template": recorded} if recorded else {}
        (copy / "manifest.json").write_text(json.dumps(manifest))
        return cppmill_core.Tokenizer.from_dir(copy)

    return change


def template(directory: Path, single: str, pair: str, names: list[str]) -> dict[str, Any]:
    """Return a template as `tokenizers` itself writes it."""
    made = Tokenizer.from_file(str(directory / "tokenizer.json"))
    ids = [(name, made.token_to_id(name)) for name in names]
    made.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    found: dict[str, Any] = json.loads(made.to_str())["post_processor"]
    return found


BOS_ALONE = ("<BOS> $A", "<BOS> $A <BOS>:1 $B:1", ["<BOS>"])
BOTH = ("<BOS> $A <EOS>", "<BOS> $A <EOS> <BOS>:1 $B:1 <EOS>:1", ["<BOS>", "<EOS>"])


@pytest.mark.parametrize(("name", "parts"), [("bos", BOS_ALONE), ("bos-eos", BOTH)])
def test_the_templates_of_tokenizers_are_taken_and_change_no_id(
    name: str, parts: Any, load: Change, directory: Path, tokenizer: cppmill_core.Tokenizer
) -> None:
    for recorded in (name, None):
        loaded = load(template(directory, *parts), recorded)
        assert loaded.encode("int x; <EOS>").equals(tokenizer.encode("int x; <EOS>"))


@pytest.mark.parametrize(
    "parts",
    [
        ("$A <EOS>", "$A <EOS> $B:1 <EOS>:1", ["<EOS>"]),
        ("<EOS> $A", "<EOS> $A <EOS>:1 $B:1", ["<EOS>"]),
        ("<BOS> $A", "<BOS> $A $B:1", ["<BOS>"]),
        ("<BOS> $A <PAD>", "<BOS> $A <PAD> <BOS>:1 $B:1 <PAD>:1", ["<BOS>", "<PAD>"]),
    ],
)
def test_another_template_is_refused(parts: Any, load: Change, directory: Path) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=r"`post_processor` is .* knows only templates of <BOS>"):
        load(template(directory, *parts))


def test_a_template_with_the_id_of_another_token_is_refused(load: Change, directory: Path) -> None:
    forged = template(directory, *BOS_ALONE)
    forged["special_tokens"]["<BOS>"]["ids"] = [0]
    with pytest.raises(cppmill_core.InvalidInputError, match="`post_processor` is"):
        load(forged)


def test_another_post_processor_is_refused(load: Change) -> None:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    with pytest.raises(cppmill_core.InvalidInputError, match="`post_processor` is"):
        load(level)


@pytest.mark.parametrize(("found", "recorded"), [(None, "bos"), (BOS_ALONE, "bos-eos"), (BOTH, "bos"), (BOTH, "eos")])
def test_a_template_that_is_not_the_recorded_one_is_refused(
    found: Any, recorded: str, load: Change, directory: Path
) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=f'but manifest.json says "{recorded}"'):
        load(found and template(directory, *found), recorded)
