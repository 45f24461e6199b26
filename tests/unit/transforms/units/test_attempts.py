"""Every start of a unit is noted, and who ran more than once is counted, whatever else stands there."""

import json
import os

from schemas.units import Stage, Unit
from transforms.units.execution import ATTEMPTS, clear_attempts, count_repeated, note_attempt


def unit(number):
    return Unit(stage=Stage.TOKENIZE, key=f"{number:064x}", num_bytes=1, label=f"unit {number}", payload={})


def test_a_note_says_what_was_started_and_by_whom(out):
    note_attempt(unit(1), out)
    [name] = out.files(ATTEMPTS)
    note = json.loads(out.read_bytes(name))
    assert name.startswith(f"{ATTEMPTS}/{unit(1).key}-")
    assert (note["stage"], note["label"], note["pid"]) == ("tokenize", "unit 1", os.getpid())
    assert {"host", "start"} < set(note)


def test_units_that_were_started_again_are_counted(out):
    for number in (1, 2, 2, 3, 3, 3):
        note_attempt(unit(number), out)
    assert count_repeated([unit(number) for number in (0, 1, 2)], out) == 1
    assert count_repeated([unit(number) for number in (1, 2, 3)], out) == 2


def test_cleared_notes_count_no_more(out):
    note_attempt(unit(1), out)
    note_attempt(unit(1), out)
    clear_attempts(out)
    assert count_repeated([unit(1)], out) == 0
    clear_attempts(out)
