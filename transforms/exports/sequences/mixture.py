"""Mixture weights: how often each document of a project stands in the sequences.

A weight of 2.5 is twice, and half of the documents a third time; 0.25 is a quarter of them once. Which ones, the hash
of their names decides: no seed, so that a larger weight only adds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from schemas.digests import path_fraction
from schemas.sequences import SequenceOptions

DEFAULT = ""
"""What stands for the default weight among the names and globs."""


@dataclass
class Mixture:
    """The weights of projects, looked up once each.

    Args:
        options: `weights` and `default_weight`.
    """

    options: SequenceOptions
    _found: dict[str, tuple[str, float]] = field(default_factory=dict)

    def entry(self, project: str) -> tuple[str, float]:
        """Return the name or glob that a project's weight stands under, `DEFAULT` if none, and the weight."""
        if project not in self._found:
            self._found[project] = self._look_up(project)
        return self._found[project]

    def copies(self, project: str, name: str) -> int:
        """Return how often a document stands in the sequences.

        Args:
            project: Its project.
            name: Its `doc_id`; of a repository the project.
        """
        weight = self.entry(project)[1]
        whole = int(weight)
        return whole + (path_fraction(f"mixture/{name}") < weight - whole)

    def _look_up(self, project: str) -> tuple[str, float]:
        for name, weight in self.options.weights:
            if name == project:
                return name, weight
        for glob, weight in self.options.weights:
            if fnmatchcase(project, glob):
                return glob, weight
        return DEFAULT, self.options.default_weight
