"""An extension of griffe, by which mkdocstrings reads docstrings: a single example is a section as several are."""

from __future__ import annotations

import re
from typing import Any

import griffe


class SingleExamples(griffe.Extension):
    """Takes `Example:`, which the Google style allows and griffe does not know, as `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ANN401 - what griffe hands over
        """Change the heading."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
