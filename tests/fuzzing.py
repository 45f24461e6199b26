"""What the tests of properties share: how many examples they try, and how a file is damaged."""

from hypothesis import settings
from hypothesis import strategies as st

FUZZ = "fuzz"
"""The profile of `make fuzz-readers`, whose tests have the marker of the same name."""
EXAMPLES = 1_000
"""Of each property, in that profile; more properties are tried with more time, as each repetition has other ones."""

CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=6), st.integers(0, 9)), max_size=5)
"""Where in a file bytes are put, which, and how many are left out there."""


def examples(number: int) -> int:
    """Return how many examples a slow property tries: a number of its own, or as many as any other when fuzzing."""
    return max(number, EXAMPLES) if settings.get_current_profile_name() == FUZZ else number


def damage(data: bytes, changes: list[tuple[float, bytes, int]]) -> bytes:
    """Return a file's bytes after changes."""
    for place, put, left_out in changes:
        at = int(place * len(data))
        data = data[:at] + put + data[at + left_out :]
    return data
