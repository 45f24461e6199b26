"""Any bytes have the ids of `tokenizers` in both profiles: by maximal valid runs, and single bytes between them."""

from pathlib import Path

import pytest
from cppmill_core import Tokenizer
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFace

PIECES = [
    *["<EOS>", "<PAD", "<RESERVED_7>", "<FIM_PREFIX>", "EOS>", "Ġ", "Ċ", "▁", "\ufeff", "\0", "\x7f", "\x85", "\u200b"],
    *[" ", "  ", "\t", "\v", "\f", "\xa0", "\u2028", "\u3000", "\n", "\r\n", "\r", "\n\n\t", "\n    ", ";\r\n    "],
    *[
        "int",
        " main",
        "(",
        ")",
        "{",
        "->",
        "::",
        "//",
        "#include <",
        "0xFF",
        "1'0",
        "1e-",
        ".5",
        "-",
        "'",
        '"',
        "\\n",
        "\\",
    ],
    *[
        "'",
        '"',
        "R",
        'R"',
        'R"(',
        ')"',
        ")x",
        "u8",
        "L'",
        "é",
        "e\u0301",
        "名",
        "😀",
        "²",
        "Ⅷ",
        "ß",
        "_",
        "x",
        "return ",
        " = ",
    ],
]
BYTES = [b"\xff", b"\xc3", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\x80"]
pieces = st.one_of(
    st.sampled_from([text.encode() for text in PIECES]),
    st.sampled_from(BYTES),
    st.text(max_size=3).map(str.encode),
    st.builds(lambda text, times: text.encode() * times, st.sampled_from(PIECES), st.integers(2, 120)),
)


def load_in_hugging_face(directory: Path) -> HuggingFace:
    """Return the directory as `tokenizers` loads it, with control tokens in text as ordinary text."""
    loaded = HuggingFace.from_file(str(directory / "tokenizer.json"))
    loaded.encode_special_tokens = True
    return loaded


@pytest.fixture(scope="module")
def loaded(directories: list[Path]) -> list[tuple[Tokenizer, HuggingFace, dict[bytes | None, int]]]:
    """Each directory as both load it, and the id of each token by its bytes."""
    tokenizers = map(Tokenizer.from_dir, directories)
    return [
        (one, load_in_hugging_face(path), ids_by_bytes(one)) for one, path in zip(tokenizers, directories, strict=True)
    ]


def ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes | None, int]:
    return {tokenizer.token_bytes(id_): id_ for id_ in range(tokenizer.vocab_size)}


def expected(hugging_face: HuggingFace, byte_ids: dict[bytes | None, int], data: bytes) -> list[int]:
    """Return the ids of the valid runs of `data`, and of the single bytes between them."""
    ids: list[int] = []
    while data:
        try:
            return ids + hugging_face.encode(data.decode()).ids
        except UnicodeDecodeError as error:
            ids += hugging_face.encode(data[: error.start].decode()).ids
            ids += [byte_ids[data[at : at + 1]] for at in range(error.start, error.end)]
            data = data[error.end :]
    return ids


@given(st.lists(pieces, max_size=30).map(b"".join))
@example(b"<EOS><RESERVED_7>")
@example(b"\xe2\x82\xac\xe2\x82 \xe2")
def test_any_bytes_have_the_ids_of_hugging_face(
    loaded: list[tuple[Tokenizer, HuggingFace, dict[bytes | None, int]]], data: bytes
) -> None:
    for tokenizer, hugging_face, byte_ids in loaded:
        ids = tokenizer.encode(data)
        assert ids.to_pylist() == expected(hugging_face, byte_ids, data)
        assert tokenizer.decode(ids) == data
        assert tokenizer.count(data) == len(ids)
