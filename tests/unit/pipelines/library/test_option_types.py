"""The types of options as keyword arguments are those of the models."""

from __future__ import annotations

from pathlib import Path

import cppmill
from configs.keywords import HOMES
from configs.tables import KEYS
from pipelines.library.option_types import options_module

MODULE = Path(__file__).parents[4] / "pipelines" / "library" / "options.py"


def test_the_module_is_what_the_models_say() -> None:
    made = options_module()
    assert MODULE.read_text() == made, "run python -m pipelines.library.option_types > pipelines/library/options.py"


def test_every_key_and_table_of_a_run_is_an_option() -> None:
    arguments = {"sources", "out"}
    assert set(cppmill.Options.__annotations__) == {*HOMES, *KEYS} - arguments
