"""The ledger counts everything once and refuses to be read back unbalanced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import IntegrityError
from schemas.ledger import Ledger
from schemas.reasons import REASONS, Column

ENTRIES = st.lists(
    st.tuples(st.sampled_from(list(Column)), st.integers(0, 2**40)).flatmap(
        lambda entry: st.tuples(st.just(entry[0]), st.sampled_from(REASONS.get(entry[0], ("",))), st.just(entry[1]))
    )
)


def filled(entries):
    ledger = Ledger()
    for column, reason, num_bytes in entries:
        ledger.add(column, reason, num_bytes=num_bytes)
    return ledger


@given(ENTRIES)
def test_in_is_the_sum_of_everything_added(entries):
    ledger = filled(entries).to_json()
    assert ledger["documents"]["in"] == len(entries)
    assert ledger["bytes"]["in"] == sum(num_bytes for _, _, num_bytes in entries)


@given(ENTRIES, ENTRIES)
def test_ledgers_merge(left, right):
    assert Ledger.sum([filled(left), filled(right)]).to_json() == filled(left + right).to_json()


@given(ENTRIES)
def test_a_ledger_reads_back(entries):
    ledger = filled(entries)
    assert Ledger.from_json(ledger.to_json(), where="test").to_json() == ledger.to_json()


@pytest.mark.parametrize("tally", ["documents", "bytes"])
def test_an_unbalanced_ledger_is_refused(tally):
    value = filled([(Column.DEAD, "truncated", 7), (Column.KEPT, "", 3)]).to_json()
    value[tally]["in"] += 1
    with pytest.raises(IntegrityError, match=f"here, {tally}: the ledger does not balance"):
        Ledger.from_json(value, where="here")
