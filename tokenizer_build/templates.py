"""Templates: what `tokenizers` and `transformers` put around a text that they encode.

A template is the post-processor of `tokenizer.json`, in the form `TemplateProcessing`
(https://huggingface.co/docs/tokenizers/api/post-processors). It moves no id: the native core gives the ids of the text
alone with any template, and which tokens are around documents is the run's policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cppmill_core.manifests import BOS, EOS
from cppmill_core.manifests.side_files import EXTRA

from schemas.errors import VocabularyConfigError
from schemas.options import HfTemplate

Json = dict[str, Any]

_ENDS: dict[HfTemplate, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "none": ((), ()),
    "bos": ((BOS,), ()),
    "bos-eos": ((BOS,), (EOS,)),
}
"""The tokens before and after a text."""


def apply_template(template: HfTemplate, rules: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[Json, Json]:
    """Return the contents of `tokenizer.json` and `tokenizer_config.json` with a template in place of the present one.

    With a template, the configuration also lists the control tokens that have no role, such as those of fill in the
    middle, as extra special tokens. Without one, both are as a build writes them by default.

    Args:
        template: What to put around a text.
        rules: The content of `tokenizer.json`.
        config: The content of `tokenizer_config.json`.

    Raises:
        VocabularyConfigError: If the tokenizer has no control token that the template needs.
    """
    control = {str(token["content"]): int(token["id"]) for token in rules["added_tokens"]}
    plain = {key: value for key, value in config.items() if key != EXTRA}
    extra = {} if template == "none" else {EXTRA: [name for name in control if name not in plain.values()]}
    return {**rules, "post_processor": _post_processor(template, control)}, {**plain, **extra}


def _post_processor(template: HfTemplate, control: Mapping[str, int]) -> Json | None:
    before, after = _ENDS[template]
    missing = [name for name in (*before, *after) if name not in control]
    if missing:
        raise VocabularyConfigError(f"hf_template = {template}: the vocabulary has no control token {missing[0]}")
    if template == "none":
        return None

    def document(text: str, type_id: int) -> list[Json]:
        special = [[{"SpecialToken": {"id": name, "type_id": type_id}} for name in end] for end in (before, after)]
        return [*special[0], {"Sequence": {"id": text, "type_id": type_id}}, *special[1]]

    return {
        "type": "TemplateProcessing",
        "single": document("A", 0),
        "pair": [*document("A", 0), *document("B", 1)],
        "special_tokens": {name: {"id": name, "ids": [control[name]], "tokens": [name]} for name in (*before, *after)},
    }
