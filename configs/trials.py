"""The options of a trial, from flags."""

from __future__ import annotations

from collections.abc import Mapping

from configs.flags import read_flags
from configs.tables import TRIAL_FLAGS
from schemas.errors import ConfigError
from schemas.trial_options import TrialOptions


def load_trial_options(values: Mapping[str, object]) -> TrialOptions:
    """Return the options that flags give.

    Args:
        values: Values by flag, text as it was typed; None for a flag that was not given.

    Raises:
        ConfigError: With one line for every problem.
    """
    layer = read_flags(values, TRIAL_FLAGS)
    problems = list(layer.problems({"options": TrialOptions}, {"options": frozenset(TrialOptions.model_fields)}))
    if problems:
        raise ConfigError("\n".join(problems))
    return TrialOptions.model_validate(layer.table("options"))
