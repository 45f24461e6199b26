from __future__ import annotations

from pathlib import Path

import pytest
from cppmill_core.byte_alphabet import BYTES_IN_ORDER
from cppmill_core.manifests import ranges

from schemas.errors import VocabularyConfigError
from tokenizer_build.bands import FIRST_LEARNED_ID, Strength, band_of
from tokenizer_build.layout import Slots, assign_ids, plan_slots, plan_text_slots, use_by_band
from tokenizer_build.lint import text_vocabulary
from tokenizer_build.lock import Lock, LockedId
from tokenizer_build.vocabulary import FixedToken

NO_LOCK = Lock.from_entries([])
TOKENS = {0: "<PAD>", 2: "<BOS>", 64: "auto", 352: "(", 4900: "0", 5300: "TEST", 5700: "$match"}


def fixed(tokens: dict[int, str]) -> list[FixedToken]:
    bands = {token_id: band_of(token_id) for token_id in tokens}
    return [FixedToken(i, tokens[i], band, "test") for i, band in bands.items() if band is not None]


def plan(vocab_size: int, lock: Lock = NO_LOCK) -> Slots:
    return plan_slots(fixed(TOKENS), lock, vocab_size)


def made_up_tokens(slots: Slots) -> list[bytes]:
    return [b"token%d" % number for number in range(slots.learned_tokens)]


@pytest.mark.parametrize("vocab_size", [7200, 7201, 7454, 9000, 65_536, 70_000])
def test_every_id_is_fixed_learned_or_reserved_at_any_size(vocab_size: int) -> None:
    slots = plan(vocab_size)
    ids = assign_ids(slots, made_up_tokens(slots))
    assert [slot.id for slot in ids] == list(range(vocab_size))
    assert {slot.id for slot in ids if slot.strength is Strength.RESERVED} == {*range(48, 64), *range(7000, 7200)}
    assert {s.id: s.token.decode() for s in ids if s.strength in (Strength.PINNED, Strength.ATOMIC)} | {
        0: "<PAD>",
        2: "<BOS>",
    } == TOKENS
    assert len({slot.spelling for slot in ids}) == vocab_size


def test_learned_ids_are_bytes_in_alphabet_order_then_tokens_upwards_then_the_freed_ids() -> None:
    slots = plan(7600)
    ids = assign_ids(slots, made_up_tokens(slots))
    missing = [bytes([byte]) for byte in BYTES_IN_ORDER if chr(byte) not in "(0"]
    assert len(missing) == 254
    assert [slot.token for slot in ids[FIRST_LEARNED_ID : FIRST_LEARNED_ID + 254]] == missing
    assert ids[FIRST_LEARNED_ID + 254].token == b"token0"
    assert ids[7599].token == b"token145"
    assert [ids[i].token for i in (1, 3, 4, 47, 65)] == [
        b"token146",
        b"token147",
        b"token148",
        b"token191",
        b"token192",
    ]
    assert ids[47].strength is Strength.LEARNED


def test_at_the_least_size_missing_bytes_take_freed_ids() -> None:
    slots = plan(7200)
    ids = assign_ids(slots, made_up_tokens(slots))
    assert ids[1].token == b"!"
    assert slots.learned_ids[0] == 1


def test_a_single_byte_that_is_fixed_keeps_its_id() -> None:
    ids = assign_ids(plan(7600), made_up_tokens(plan(7600)))
    assert (ids[352].token, ids[4900].token) == (b"(", b"0")
    assert [slot.id for slot in ids if slot.token == b"("] == [352]


def test_a_locked_id_without_its_token_is_reserved() -> None:
    lock = Lock.from_entries([LockedId("gone", 700, "1.0", "ids.lock:1"), LockedId("auto", 64, "1.0", "ids.lock:2")])
    slots = plan(7600, lock)
    ids = assign_ids(slots, made_up_tokens(slots))
    assert ids[700].strength is Strength.RESERVED
    assert ids[700].spelling == "<RESERVED_700>"
    assert ids[64].token == b"auto"
    assert "<RESERVED_700>" in slots.names_that_text_must_not_spell()


def test_too_many_or_too_few_tokens_are_refused() -> None:
    slots = plan(7600)
    for wrong in (made_up_tokens(slots)[1:], [*made_up_tokens(slots), b"more"]):
        with pytest.raises(ValueError, match="zip"):
            assign_ids(slots, wrong)


def test_the_least_size_counts_everything_and_is_never_below_the_learned_ids() -> None:
    slots = plan(7600)
    assert slots.learned_tokens == 7600 - 7 - 216 - 254
    assert slots.least_vocab_size(seed_pieces=8000) == 7 + 216 + 254 + 8000
    assert slots.least_vocab_size(seed_pieces=10) == 7200


def test_the_manifest_has_a_band_of_learned_ids_where_there_are_any() -> None:
    last = plan(65_536).all_bands[-1]
    assert (last.name, last.first, last.last, last.strength) == ("learned", 7200, 65_535, Strength.LEARNED)
    assert plan(7200).all_bands[-1].last == 7199


def test_a_vocabulary_for_text_learns_all_but_its_control_tokens() -> None:
    names = ["<|endoftext|>", "<|user|>"]
    vocabulary, _ = text_vocabulary(Path(), names)
    slots = plan_text_slots(vocabulary.tokens, 300)
    ids = assign_ids(slots, [f"token{number}".encode() for number in range(300 - 2 - 256)])
    assert [(slot.spelling, slot.strength) for slot in ids[:2]] == [(name, Strength.CONTROL) for name in names]
    assert [slot.token for slot in ids[2:258]] == [bytes([byte]) for byte in BYTES_IN_ORDER]
    assert {(slot.strength, slot.band) for slot in ids[2:]} == {(Strength.LEARNED, "learned")}
    assert [(band.name, band.first, band.last) for band in slots.all_bands] == [("control", 0, 1), ("learned", 2, 299)]
    for wrong in ([], ["a", "a"]):
        with pytest.raises(VocabularyConfigError, match="each once"):
            text_vocabulary(Path(), wrong)


def test_ranges_are_sorted_and_inclusive() -> None:
    assert ranges([]) == []
    assert ranges([5, 1, 2, 3, 9]) == [[1, 3], [5, 5], [9, 9]]


def test_the_use_of_a_band_counts_fixed_and_learned_tokens_and_no_names() -> None:
    slots = plan(7300)
    ids = assign_ids(slots, made_up_tokens(slots))
    use = {band.band: band for band in use_by_band(ids, {b"TEST": 3, b"auto": 2, b"token1": 5, b"a": 7})}
    assert set(use) == {"keywords", "operators", "integers", "domain", "learned"}
    assert (use["domain"].ids, use["domain"].used, use["domain"].tokens, use["domain"].num_bytes) == (2, 1, 3, 12)
    assert (use["learned"].used, use["learned"].tokens, use["learned"].num_bytes) == (2, 12, 5 * 6 + 7)
    assert sum(band.ids for band in use.values()) == slots.vocab_size - len(slots.reserved) - 2
