"""The licences of documents whose source names none: by tag, by text, and by the licence file of a folder.

The first pass of ingest finds them, before the filters, and records them in the fingerprints. The second pass takes
them from there. Each is found in the document itself, or in files that the plan names, so units do not depend on one
another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.options import IngestOptions
from schemas.places import is_remote
from schemas.tables import LICENSE_SOURCES
from schemas.units import Unit
from transforms.filters.license_texts import (
    HEAD_BYTES,
    find_notices,
    identify_license_file,
    states_other_conditions,
)
from transforms.filters.licenses import find_tags, names_license
from transforms.sources.batches import is_equal, set_licenses
from transforms.sources.license_files import folder_of, names_holders, nearest_folder, read_license_files
from transforms.sources.license_terms import all_of
from transforms.storage.urls import input_errors


def licensed(documents: Iterator[pa.RecordBatch], unit: Unit, options: IngestOptions) -> Iterator[pa.RecordBatch]:
    """Return batches of READ as the filters see them: with the licences that are found, if options ask for that.

    Args:
        documents: The documents of the unit, with their bytes, redacted or not.
        unit: An input unit as `plan_inputs` makes them.
        options: The options of ingest.

    Raises:
        ConfigError: If a library is not installed.
    """
    return map(make_license_finder(unit, options).add_licenses, documents) if options.find_licenses else documents


def make_license_finder(unit: Unit, options: IngestOptions) -> LicenseFinder:
    """Return what finds the licences of a unit's documents; reads the licence files that bear on it."""
    return LicenseFinder(
        texts=options.find_licenses != "tags",
        folders=_read_folders(unit, options) if options.find_licenses == "folders" else {},
    )


@dataclass(frozen=True, kw_only=True)
class LicenseFinder:
    """Finds the licences of documents.

    Attributes:
        texts: Whether texts of licences count, and not tags alone.
        folders: The licence of each folder that has a licence file; None where it was not identified.
    """

    texts: bool
    folders: Mapping[str, str | None]

    def add_licenses(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of READ with all licences, and where each is from in the column `license_source`."""
        given = zip(documents.column("license").to_pylist(), documents.column("terms").to_pylist(), strict=True)
        licenses = [name or terms for name, terms in given]
        sources = [LICENSE_SOURCES[0] if name else LICENSE_SOURCES[-1] for name in licenses]
        paths, content = documents.column("path"), documents.column("content")
        for row in np.flatnonzero(~is_equal(documents.column("doc_id"), "")).tolist():
            if not names_license(licenses[row]):
                head = bytes(memoryview(content[row].as_buffer())[:HEAD_BYTES])
                found = next(self._find(head, paths[row].as_py()), None)
                if found is not None:
                    sources[row], licenses[row] = found
        return set_licenses(documents, pa.array(licenses, pa.string()), pa.array(sources, pa.string()))

    def _find(self, head: bytes, path: str) -> Iterator[tuple[str, str]]:
        """Yield where a document's licence is from, and the licence."""
        tag = find_tags(head)
        if names_license(tag):
            yield "tag", tag
        text = find_notices(head) if self.texts else None
        if text:
            yield "text", text
        folder = nearest_folder(path, self.folders)
        inherited = None if folder is None else self.folders[folder]
        if inherited and not states_other_conditions(head):
            yield "folder", inherited


def _read_folders(unit: Unit, options: IngestOptions) -> dict[str, str | None]:
    """Return the licences of folders by their licence files; all files of a folder hold, and each must be known.

    A file COPYRIGHT beside others is passed over if it holds no licence: many name the holders alone.
    """
    found, root = dict[str, list[str | None]](), unit.payload["root"]
    with input_errors(root) if is_remote(root) else nullcontext():
        for path, content in read_license_files(unit, options):
            name = None if content is None else identify_license_file(content)
            names = found.setdefault(folder_of(path), [])
            if name or not names_holders(path):
                names.append(name)
    return {folder: all_of(map(str, names)) if all(names) else None for folder, names in found.items()}
