"""A pytest plugin for testing filters: `pytest_plugins = ["cppmill.testing"]`.

It has the fixture `filter_property`. This module imports pytest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from cppmill.start import require_packages

require_packages()

from transforms.filters.properties import PROPERTIES, check_filter  # noqa: E402 - only ours, which is checked first

__all__ = ["FilterProperty", "filter_property"]

FilterProperty = Callable[..., list[str | None]]
"""Takes what `cppmill.check_filter` takes."""


@pytest.fixture(params=PROPERTIES)
def filter_property(request: pytest.FixtureRequest) -> FilterProperty:
    """One of the properties that runs rely on, as a function that fails if a filter does not have it.

    A test with this fixture runs once per property: the filter must give the same answer for a document each time,
    after it is made again, in any batch, in any order and beside copies. The function has the parameters of
    `cppmill.check_filter`.

    Example:
        def test_runs_can_rely_on_the_filter(filter_property):
            filter_property(FILTER, {"most": 0.5}, documents=[b"// a comment"])
    """
    return partial(check_filter, properties=(request.param,))
