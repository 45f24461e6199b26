"""The card of a run: a README.md that people read, and that `datasets.load_dataset` and the Hugging Face Hub follow.

Its front matter, https://huggingface.co/docs/hub/datasets-cards, names the two tables as configs by patterns that are
relative to the card, so the card is above `documents/` and `tokens/`. `datasets` caches what it read by the folder's
name and the configs only. The receipt's digest in the configs prevents it from returning the rows of another run.
"""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from cppmill_core import PlatformVocab
from huggingface_hub import DatasetCardData
from markupsafe import Markup

from pipelines.pages import render_page
from schemas.printing import printable
from transforms.records.croissant import MEANINGS, Publication, table_schemas

Licenses = Mapping[tuple[str, str | None], int]
"""Number of documents by project and licence; None where the source gives none."""

MOST_PROJECTS = 200
"""Rows of the table of licences: a corpus may have a million projects."""

_HUB_LICENSES = frozenset(
    (
        *("agpl-3.0", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "bsl-1.0", "cc0-1.0", "gpl-2.0", "gpl-3.0", "isc"),
        *("lgpl-2.1", "lgpl-3.0", "mit", "mpl-2.0", "ncsa", "unlicense", "zlib"),
    )
)
"""The Hub's identifiers of licences of C++ code: SPDX's in lower case. Any other licence is `other`."""


def render_card(
    receipt: dict[str, Any],
    manifest: dict[str, Any],
    publication: Publication,
    licenses: Licenses,
    platforms: PlatformVocab | None = None,
) -> str:
    """Return the card as Markdown.

    Args:
        receipt: The run's receipt.
        manifest: The tokenizer's manifest.
        publication: Name and place.
        licenses: Documents by project and licence.
        platforms: What the platform ids mean, if `platform_vocab.json` is beside the card.
    """
    given = any(license is not None for _, license in licenses)
    rows = _project_rows(licenses) if given else []
    page = render_page(
        "card.md.j2",
        publication=publication,
        title=_cell(publication.name),
        description=describe_run(receipt, licenses),
        receipt=receipt,
        manifest=manifest,
        metadata=Markup(_metadata(receipt, publication, licenses).to_yaml()),
        platforms=platforms,
        ledger=_ledger_rows(receipt["ledger"]),
        tables=[
            (table, [(field.name, _type_name(field.type), Markup(MEANINGS[field.name])) for field in schema])
            for table, schema in table_schemas(receipt).items()
        ],
        projects=rows[:MOST_PROJECTS],
        more_projects=len(rows[MOST_PROJECTS:]),
    )
    return printable(page)


def _metadata(receipt: dict[str, Any], publication: Publication, licenses: Licenses) -> DatasetCardData:
    """Return the card's front matter; of a run without documents it has no configs, as there is nothing to load."""
    documents = receipt["dataset"]["documents"]
    configs = [_config(table, receipt["digest"]) for table in ("tokens", "documents")] if documents else None
    return DatasetCardData(
        pretty_name=publication.name,
        license=hub_licenses(licenses),
        language=["code"],
        task_categories=["text-generation"],
        size_categories=[size_category(documents)],
        tags=["cpp", "code", "tokenized"],
        configs=configs,
    )


def _config(table: str, digest: str) -> dict[str, Any]:
    files = [{"split": "train", "path": f"{table}/part-*.parquet"}]
    default = {"default": True} if table == "tokens" else {}
    return {"config_name": table, "description": f"receipt {digest}", **default, "data_files": files}


def describe_run(receipt: dict[str, Any], licenses: Licenses) -> str:
    """Return what the dataset is, in one sentence."""
    dataset, projects = receipt["dataset"], len({project for project, _ in licenses})
    return (
        f"{dataset['documents']:,} C++ documents ({dataset['bytes']:,} bytes) of {projects:,} "
        f"{'project' if projects == 1 else 'projects'}, byte for byte, and their {dataset['tokens']:,} tokens of a "
        f"vocabulary of {receipt['tokenizer']['vocab_size']:,} ids."
    )


def hub_licenses(licenses: Licenses) -> list[str]:
    """Return the Hub's identifiers of the licences: with `other` for what it has none for, `unknown` for none."""
    names = {_hub_license(license) if license is not None else "unknown" for _, license in licenses}
    return sorted(names or {"unknown"})


def _hub_license(license: str) -> str:
    name = license.lower().removesuffix("-only").removesuffix("-or-later")
    return name if name in _HUB_LICENSES else "other"


def size_category(rows: int) -> str:
    """Return the Hub's size category of a number of rows.

    Example:
        >>> size_category(999), size_category(1066), size_category(25_000_000)
        ('n<1K', '1K<n<10K', '10M<n<100M')
    """
    names = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"]
    bounds = [1000 * 10**place for place in range(len(names))]
    place = sum(rows >= bound for bound in bounds)
    if place == 0:
        return f"n<{names[0]}"
    return f"{names[place - 1]}<n<{names[place]}" if place < len(names) else f"n>{names[-1]}"


def _ledger_rows(ledger: dict[str, Any]) -> list[tuple[str, int, int]]:
    documents, sizes = ledger["documents"], ledger["bytes"]
    rows = [(name, documents[name], sizes[name]) for name in ("in", "kept", "empty", "duplicate")]
    for column in ("filtered", "dead"):
        rows += [(f"{column}: {reason}", n, sizes[column][reason]) for reason, n in documents[column].items()]
    return rows


def _project_rows(licenses: Licenses) -> list[tuple[str, int, str]]:
    """Return project, documents and licences, the largest project first."""
    projects: dict[str, Counter[str]] = defaultdict(Counter)
    for (project, license), documents in licenses.items():
        projects[project][_cell(license) if license is not None else Markup("not given")] += documents
    rows = [(project, found.total(), found) for project, found in projects.items()]

    def listed(found: Counter[str]) -> Markup:
        most_first = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return Markup(", ").join(Markup("{} ({:,})").format(Markup(name), number) for name, number in most_first)

    ordered = sorted(rows, key=lambda row: (-row[1], row[0]))
    return [(_cell(project), total, listed(found)) for project, total, found in ordered]


def _cell(text: str) -> Markup:
    """Return text that Markdown shows as it is, in one line: names come from folders and columns of others."""
    return Markup(re.sub(f"[{re.escape(string.punctuation)}]", r"\\\g<0>", " ".join(text.split())))


def _type_name(kind: pa.DataType) -> str:
    return f"list of {kind.value_type}" if isinstance(kind, pa.ListType) else str(kind)
