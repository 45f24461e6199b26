"""Mixture weights: how many copies of each document of a project are in the sequences.

A weight of 2.5 repeats every document twice and half of them a third time; 0.25 keeps a quarter of them. The hash of
their names decides which; there is no seed, so a larger weight only adds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from schemas.digests import path_fraction
from schemas.export_options import SequenceOptions

DEFAULT = ""
"""The entry of the default weight among the names and globs."""


@dataclass
class Mixture:
    """The weights of projects, looked up once each."""

    options: SequenceOptions
    _found: dict[str, tuple[str, float]] = field(default_factory=dict)

    def entry(self, project: str) -> tuple[str, float]:
        """Return the name or glob that gives a project its weight, `DEFAULT` if none does, and the weight."""
        if project not in self._found:
            self._found[project] = self._look_up(project)
        return self._found[project]

    def copies(self, project: str, name: str) -> int:
        """Return how many copies of a document are in the sequences.

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
