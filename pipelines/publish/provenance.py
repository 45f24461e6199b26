"""The program of `cppmill provenance`: a run's receipt in standard formats, in a folder that can be published.

The folder gets `provenance.json`, `croissant.json` and `README.md`, and, if the run is on this machine, links to its
shards and tokenizer, so that the files named by these three are beside them. Nothing is written into the run itself:
its receipt names every file in it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from configs.outputs import check_outside, check_unlisted
from pipelines.publish.card import Licenses, describe_run, render_card
from schemas.digests import canonical_json
from schemas.errors import ConfigError
from schemas.files import make_symlink, write_file
from schemas.passwords import redacted
from schemas.places import is_remote
from schemas.printing import one_line, printable_json
from transforms.records.croissant import CROISSANT, Publication, make_croissant
from transforms.records.in_toto import BUILD_TYPE, PRODUCTS, STATEMENT, make_statement, products
from transforms.records.platforms import PLATFORM_VOCAB, read_platform_vocab
from transforms.records.receipts import check_named, read_receipt, unchanged_receipt
from transforms.records.versions import store_of
from transforms.storage.folder import OutputFolder
from transforms.tokens.tokenizer import check_tokenizer, read_manifest

CARD = "README.md"

_MARKS = {STATEMENT: BUILD_TYPE.encode(), CROISSANT: b'"@id": "tokens/token_ids"', CARD: b"\nMade by cppmill "}
"""What each of the files has in it that this command wrote."""


def write_provenance(run: str, folder: Path, publication: Publication, *, builder: str) -> Iterator[str]:
    """Write statement, Croissant description and card of a finished run; the same bytes for the same arguments.

    Args:
        run: The run's folder, or its URL.
        folder: Where to write; made if it is not there. What an earlier call wrote there is replaced.
        publication: What the receipt does not know.
        builder: URI of who vouches for the run.

    Yields:
        Lines that say what was written.

    Raises:
        ConfigError: If there is no finished run, an option is not a date or URI, or the folder is in the run's or holds
            files of others.
        IntegrityError: If the receipt is not the one that was published, or the run lacks the tokenizer, documents
            or tokens that it names.
    """
    _check_options(publication, builder)
    run = run if is_remote(run) else os.path.realpath(run)  # `current` of a store may move meanwhile
    out = OutputFolder(run)
    with unchanged_receipt(out) as check_unchanged:
        receipt = read_receipt(out)
        _check_folder(run, folder)
        check_tokenizer(out, receipt)
        linked = [name for product in PRODUCTS for name in products(receipt, product)]
        check_named(out, receipt, [*linked, *(name for name in receipt["files"] if name == PLATFORM_VOCAB)])
        licenses = count_licenses(out, receipt)
        names = sorted({license for _, license in licenses if license is not None})
        statement = make_statement(receipt, builder=builder)
        description = describe_run(receipt, licenses)
        croissant = make_croissant(receipt, publication, licenses=names, description=description)
        described = printable_json(json.dumps(croissant, indent=2, ensure_ascii=False))
        platforms = read_platform_vocab(out, receipt) if out.exists(PLATFORM_VOCAB) else None
        card = render_card(receipt, read_manifest(out), publication, licenses, platforms)
        check_unchanged()
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / STATEMENT, canonical_json(statement) + b"\n")
    write_file(folder / CROISSANT, f"{described}\n".encode())
    write_file(folder / CARD, f"{card}\n".encode())
    yield f"{folder / STATEMENT}: in-toto statement, SLSA provenance of {len(statement['subject']):,} files"
    yield f"{folder / CROISSANT}: Croissant, {len(croissant['recordSet'])} record sets"
    configs = (
        "configs tokens and documents" if receipt["dataset"]["documents"] else "no configs, as there are no documents"
    )
    yield f"{folder / CARD}: dataset card, {configs}; licences: {', '.join(map(one_line, names)) or 'none given'}"
    yield _link_products(run, folder, receipt)


def count_licenses(out: OutputFolder, receipt: dict[str, Any]) -> Licenses:
    """Return the number of documents by project and licence; two columns of the documents are read.

    Raises:
        IntegrityError: If they are not those that the receipt names.
    """
    counts: Counter[tuple[str, str | None]] = Counter()
    check_named(out, receipt, products(receipt, "documents"))
    for name in products(receipt, "documents"):
        with out.open_ranges(name) as file, pq.ParquetFile(file) as shard:
            for batch in shard.iter_batches(columns=["project", "license"]):
                table = pa.table(batch).group_by(["project", "license"]).aggregate([([], "count_all")])
                for row in table.to_pylist():
                    counts[row["project"], row["license"]] += row["count_all"]
    return counts


def default_name(run: str) -> str:
    """Return what a run's dataset is called if nobody says: the last part of its place, as text in any case.

    A version of a store is called like the store, so every version has the same name.
    """
    place = run.rstrip("/") if is_remote(run) else str(Path(run).resolve())
    name = (store_of(place) or place).rpartition("/")[2]
    return os.fsencode(name).decode("utf-8", "replace")


def _check_options(publication: Publication, builder: str) -> None:
    for option, uri in (("--builder", builder), ("--url", publication.url)):
        if uri is not None and not urlsplit(uri).scheme:
            raise ConfigError(f"{option} {uri}: not allowed; it takes a URI with its scheme, as https://example.org/a")
        if uri is not None and redacted(uri) != uri:
            raise ConfigError(f"{option} {uri}: it has a password or a token, and would be published; leave it out")
    try:
        date.fromisoformat(publication.date or "2000-01-01")
    except ValueError:
        raise ConfigError(f"--date {publication.date}: not allowed; it takes a day as YYYY-MM-DD") from None


def _check_folder(run: str, folder: Path) -> None:
    check_outside(folder, run, option="--out")
    check_unlisted(folder, option="--out")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {folder}: not a folder; name another")
    foreign = next(_foreign_entries(folder), None)
    if foreign is not None:
        raise ConfigError(f"--out {folder}: {foreign} was not made by this command; name another folder")


def _foreign_entries(folder: Path) -> Iterator[Path]:
    """Yield what this command would replace and did not make, or what shows that the folder is for something else.

    Anything may be beside a statement of ours, and hidden files (`.git`, `.gitattributes`) anywhere.
    """
    for name, mark in _MARKS.items():
        path = folder / name
        if path.exists() and not (path.is_file() and mark in path.read_bytes()):
            yield path
    yield from (folder / name for name in PRODUCTS if (folder / name).is_symlink())
    linked = [folder / PLATFORM_VOCAB, *(path for name in PRODUCTS for path in _entries(folder / name))]
    yield from (path for path in linked if path.exists() and not path.is_symlink())
    if not (folder / STATEMENT).exists():
        ours = (*_MARKS, *PRODUCTS, PLATFORM_VOCAB)
        yield from (path for path in _entries(folder) if path.name not in ours and not path.name.startswith("."))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _link_products(run: str, folder: Path, receipt: dict[str, Any]) -> str:
    """Link the files that the card names, one by one; return a line about them."""
    if is_remote(run):
        return (
            f"{run}: copy documents/, tokens/ and tokenizer/ from there into {folder} to load it, and {PLATFORM_VOCAB} "
            "for the labels of platform ids"
        )
    number = 0
    for name in PRODUCTS:
        (folder / name).mkdir(exist_ok=True)
        for link in _entries(folder / name):
            link.unlink()
        for path in products(receipt, name):
            _link(run, folder, path)
            number += 1
    (folder / PLATFORM_VOCAB).unlink(missing_ok=True)
    if (Path(run) / PLATFORM_VOCAB).exists():
        _link(run, folder, PLATFORM_VOCAB)
    return f"{folder}: {number:,} links to the shards and the tokenizer of {run}"


def _link(run: str, folder: Path, path: str) -> None:
    link = folder / path
    make_symlink(link, os.path.relpath(Path(run).resolve() / path, link.parent.resolve()))
