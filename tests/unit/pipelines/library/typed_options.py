"""What a type checker finds in the options of a user's program: `make lint` reads this file, and nothing runs it.

An error that mypy no longer finds is an unused `type: ignore`, which is an error too.
"""

from __future__ import annotations

from pathlib import Path

import cppmill
from cppmill.beam import Encode, ReadCpp

options: cppmill.Options = {"vocab_size": 32_768, "ingest": {"drop_generated": True, "redact": ["email"]}}

cppmill.run(Path("src"), out="out", reporter=None, **options)
cppmill.run(["a", "b"], out=Path("out"), tokenizer=Path("tokenizer"), ingest={"filters": {"mine": {"least": 1}}})
cppmill.retokenize("src", store="store", drift={"alert_compression": 0.05}, limit=10)
cppmill.verify("out", signed_by=Path("signers"))
ReadCpp(sources="src", ingest={"sample": 0.1})
made: cppmill.Retokenization = cppmill.retokenize("src", store="store")
units: list[cppmill.PlannedUnit] = cppmill.plan("src", out="out")


class Log:
    """A reporter of a user, which says nothing."""

    def stage_started(self, stage: str, units: int, num_bytes: int) -> None:
        """Begin a stage."""

    def progress(self, done_units: int, done_bytes: int) -> None:
        """Go on with it."""

    def stage_done(self, stage: str, seconds: float, summary: cppmill.Summary) -> None:
        """End it."""

    def note(self, message: str) -> None:
        """Say something else."""


cppmill.run("src", out="out", reporter=Log())

cppmill.run("src", out="out", vocab_sise=32_768)  # type: ignore[call-arg]
cppmill.plan("src", out="out", vocab_size="big")  # type: ignore[arg-type]
cppmill.run("src", out="out", ingest={"drop_generatd": True})  # type: ignore[arg-type]
cppmill.run("src", out="out", ingest={"redact": ["phone"]})  # type: ignore[arg-type]
cppmill.retokenize("src", store="store", drift={"alert_x": 1})  # type: ignore[arg-type]
Encode(tokenizer="tokenizer", tokenize={"boss": False})  # type: ignore[typeddict-unknown-key]
