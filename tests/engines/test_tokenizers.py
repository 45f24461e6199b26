"""Published tokenizers, which `make engines NAME=tokenizers` fetches: the native core gives the ids of `tokenizers`."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from cppmill_core import Tokenizer, load_tokenizer
from tokenizers import Tokenizer as Peer

from configs.published import FETCHED
from pipelines.engines.cache import engine_path
from pipelines.tokenizers.adopt import adopt_tokenizer
from tests.unit.native.test_foreign_patterns import PROSE

HOSTILE = "<tool_call><|endoftext|></think><｜fim▁hole｜> '\u017f X's 12345\r\n\t\n   x" + "é" * 300 + " " * 300


@pytest.mark.parametrize("name", FETCHED)
def test_a_published_tokenizer_is_run_by_the_native_core_with_the_ids_of_tokenizers(name: str, tmp_path: Path) -> None:
    said = adopt_tokenizer(Path(name), tmp_path / "adopted")
    assert said[0].endswith("run by the native core")
    adopted = load_tokenizer(tmp_path / "adopted")
    assert isinstance(adopted, Tokenizer)
    peer = Peer.from_file(str(engine_path("tokenizers") / name / "tokenizer.json"))
    peer.encode_special_tokens = True
    headers = sorted(Path(np.get_include()).rglob("*.h"))[:12]
    texts = [HOSTILE, *PROSE, "".join(PROSE), *(header.read_text(errors="replace") for header in headers)]
    texts = [unicodedata.normalize("NFC", text) for text in texts]
    ids = adopted.encode_batch(texts, 2)
    assert ids.to_pylist() == [encoding.ids for encoding in peer.encode_batch_fast(texts, add_special_tokens=False)]
    assert adopted.decode_batch(ids).to_pylist() == [text.encode() for text in texts]


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3"])
def test_with_its_normaliser_a_published_tokenizer_has_the_ids_of_tokenizers_for_any_text(
    name: str, tmp_path: Path
) -> None:
    said = adopt_tokenizer(Path(name), tmp_path / "adopted", allow_lossy=True)
    assert said[0].endswith("run by the native core") and "lossy: it puts text in NFC (`normalizer`)" in said
    adopted = load_tokenizer(tmp_path / "adopted")
    peer = Peer.from_file(str(engine_path("tokenizers") / name / "tokenizer.json"))
    peer.encode_special_tokens = True
    texts = [HOSTILE, *PROSE, *(unicodedata.normalize("NFD", text) for text in PROSE), "</tool_call>\u0338"]
    ids = adopted.encode_batch(texts).to_pylist()
    assert ids == [encoding.ids for encoding in peer.encode_batch_fast(texts, add_special_tokens=False)]
