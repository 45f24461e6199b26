from __future__ import annotations

from cppmill_core.byte_alphabet import BYTES_IN_ORDER, CHARACTERS, spell
from tokenizers import pre_tokenizers


def test_characters_are_those_of_the_tokenizers_package() -> None:
    assert sorted(CHARACTERS) == sorted(pre_tokenizers.ByteLevel.alphabet())


def test_text_is_spelled_as_the_tokenizers_package_spells_it() -> None:
    text = "".join(map(chr, range(0x100))) + "\u20ac\U0001f600"
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    assert [spell(text.encode())] == [word for word, _ in spelled]


def test_order_is_that_of_the_characters() -> None:
    assert [CHARACTERS[byte] for byte in BYTES_IN_ORDER] == sorted(CHARACTERS)
    assert BYTES_IN_ORDER[:2] == (ord("!"), ord('"'))
    assert BYTES_IN_ORDER[-1] == 0xAD
