"""A session leaves no temporary files when a signal ends it, whatever its threads do."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages.session import open_session


def test_a_stop_removes_what_a_thread_is_writing(tmp_path: Path) -> None:
    source = tmp_path / "x.cpp"
    source.write_text("int x;\n")
    out = tmp_path / "out"
    config = load_run_config(flags={"SOURCE": [str(source)], "--out": str(out)}, needs_sources=True)
    with pytest.raises(KeyboardInterrupt), open_session(config, Reporters()) as session:
        half = session.out.temporary / "half"
        half.write_bytes(b"half")
        raise KeyboardInterrupt
    assert not half.exists()
