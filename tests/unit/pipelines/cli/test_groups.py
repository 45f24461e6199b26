"""The command line is made whole only where it is needed."""

from __future__ import annotations

import pytest
import typer

from pipelines.cli.app import app
from pipelines.cli.groups import ASKED, narrowed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "SOURCE", "--out", "OUT"], ["run"]),
        (["prove-absent"], ["prove-absent"]),
        (["vocab", "lint"], ["vocab"]),
        (["rnu"], None),
        (["--help"], None),
        ([], None),
    ],
)
def test_one_command_is_made_if_the_first_word_names_it(
    words: list[str], expected: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ASKED, raising=False)
    found = narrowed(app, words)
    if expected is None:
        assert found is app
    else:
        assert list(typer.main.get_command(found).commands) == expected  # type: ignore[attr-defined]  # a group
        assert len(app.registered_commands) > 1, "the command line itself stays whole"
    monkeypatch.setenv(ASKED, "complete_bash")
    assert narrowed(app, words) is app


def test_an_argument_is_refused_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["trace", "https://me:hush@host/checkpoint"])
    assert "https://me:***@host/checkpoint" in capsys.readouterr().err
