"""Documents of any bytes are cut as the encoder's contract says, and a reference has its ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.lib.references import cut_runs, is_utf8

PIECES = st.sampled_from([b"a", b" ", b"\xc3\xa9", b"\xe2\x82", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x80"])


@given(st.lists(PIECES, max_size=9).map(b"".join))
def test_runs_are_what_the_decoder_replaces_and_keeps(data: bytes) -> None:
    runs = list(cut_runs(data))
    assert b"".join(run.encode() if isinstance(run, str) else run for run in runs) == data
    assert "".join(run if isinstance(run, str) else "\ufffd" for run in runs) == data.decode(errors="replace")
    texts = [isinstance(run, str) for run in runs]
    assert not any(first and second for first, second in zip(texts[:-1], texts[1:], strict=True))
    assert all(runs)


@pytest.mark.parametrize(("data", "utf8"), [(b"", True), (b"a\xc3\xa9", True), (b"a\xc3", False)])
def test_utf8_is_recognised(data: bytes, utf8: bool) -> None:
    assert is_utf8(data) is utf8
