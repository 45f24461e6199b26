"""Claims: one process gets a unit, the claims of the dead are void, and nothing that is done is run again."""

from __future__ import annotations

import pytest

from schemas.units import Stage, Unit
from transforms.storage.folder import OutputFolder
from transforms.units.claims import CLAIMS, Claimant, claim_units, clear_claims
from transforms.units.flow import run_flow
from transforms.units.peer_locks import peer_lock, peer_locks


def a_unit(letter: str) -> Unit:
    return Unit(stage=Stage.TOKENIZE, key=64 * letter, num_bytes=3, label=f"unit {letter}", payload={})


def finished_file(unit: Unit) -> str:
    return unit.receipt_path


@pytest.fixture
def first(out: OutputFolder) -> Claimant:
    return Claimant(out=out, lock=peer_lock(0), token="first")


@pytest.fixture
def second(out: OutputFolder) -> Claimant:
    return Claimant(out=out, lock=peer_lock(1), token="second")


def test_one_of_two_processes_gets_a_unit(first: Claimant, second: Claimant) -> None:
    assert [first.claim(a_unit("a")), second.claim(a_unit("a")), first.claim(a_unit("a"))] == [True, False, False]
    assert second.claim(a_unit("b"))


def test_only_the_claims_of_other_living_processes_count_and_the_rest_are_removed(
    out: OutputFolder, first: Claimant, second: Claimant
) -> None:
    third = Claimant(out=out, lock=peer_lock(2), token="third")
    for claimant, letter in ((first, "a"), (second, "b"), (third, "c")):
        claimant.claim(a_unit(letter))
    units = [a_unit(letter) for letter in "abcd"]
    asked = []

    def is_alive(lock: str, token: str) -> bool:
        asked.append((lock, token))
        return token == "second"

    assert first.find_claimed(units, is_alive) == {64 * "b"}
    assert sorted(asked) == [(peer_lock(1), "second"), (peer_lock(2), "third")]
    assert [first.claim(unit) for unit in units] == [True, False, True, True]


def test_a_claim_whose_writer_died_while_writing_it_is_void(out: OutputFolder, first: Claimant) -> None:
    out.store.create(f"{CLAIMS}/{64 * 'a'}.json", b"")
    assert not first.claim(a_unit("a"))
    assert first.find_claimed([a_unit("a")], lambda lock, token: True) == set()
    assert first.claim(a_unit("a"))


def test_claims_are_cleared(out: OutputFolder, first: Claimant) -> None:
    first.claim(a_unit("a"))
    clear_claims(out)
    assert list(out.files(CLAIMS)) == []


def test_what_others_claimed_or_finished_is_not_passed_on(out: OutputFolder, first: Claimant, second: Claimant) -> None:
    second.claim(a_unit("a"))
    out.publish_bytes(finished_file(a_unit("b")), b"{}")
    passed = run_flow(claim_units(first, finished_file), [a_unit(letter) for letter in "abc"])
    assert list(passed) == [a_unit("c")]
    assert list(run_flow(claim_units(second, finished_file), [a_unit("c")])) == []


def test_the_locks_of_peers_are_found_by_their_names(out: OutputFolder) -> None:
    with out.store.lock(peer_lock(0)), out.store.lock(peer_lock(12)):
        assert peer_locks(out) == [peer_lock(0), peer_lock(12)]
