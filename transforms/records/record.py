"""Records, and their verification: a record is the JSON file that lists a folder's contents, a receipt or a manifest.

A record has a `format` and a `digest`, the SHA-256 of the record without the digest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from schemas.digests import canonical_json, parse_json, sha256_json
from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder

MALFORMED = (KeyError, TypeError, AttributeError, ValueError)
"""What reading a record raises if its values are not of the form that its format has."""


def read_record(out: OutputFolder, name: str, *, kind: str, record_format: str, advice: str) -> dict[str, Any] | None:
    """Return a record, or None if there is none.

    Args:
        out: The folder.
        name: The file.
        kind: What it is called in messages, `receipt`.
        record_format: The format that it must have.
        advice: What to do if it has another format.

    Raises:
        IntegrityError: If it is not a record of this format.
    """
    try:
        data = out.read_bytes(name)
    except FileNotFoundError:
        return None
    try:
        record = parse_json(data)
        if record["format"] != record_format:
            raise ValueError(f"format {record['format']!r}")
        canonical_json(record)
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{out.where(name)}: not a {kind} of format {record_format} ({error}); {advice}"
        ) from error
    return dict(record)


def read_sealed(out: OutputFolder, name: str, *, kind: str, record_format: str, advice: str) -> dict[str, Any] | None:
    """Return a record without its digest, or None if there is none; the arguments are those of `read_record`.

    Earlier versions wrote some records without a digest.

    Raises:
        IntegrityError: If it is not a record of this format, or was changed since it got its digest.
    """
    record = read_record(out, name, kind=kind, record_format=record_format, advice=advice)
    if record is not None and (said := record.pop("digest", None)) is not None:
        # A key that is there twice would be read in two ways.
        if out.read_bytes(name) != canonical_json({**record, "digest": said}):
            raise IntegrityError(f"{out.where(name)}: it is not canonical JSON; {advice}")
        found = sha256_json(record)
        if found != said:
            raise IntegrityError(f"{out.where(name)}: its digest is {said}, its content gives {found}; {advice}")
    return record


def check_record(out: OutputFolder, name: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a record itself: its digest, or its JSON form."""
    found = sha256_json({key: value for key, value in record.items() if key != "digest"})
    if found != record.get("digest"):
        yield f"{out.where(name)}: its digest is {record.get('digest')}, its content gives {found}"
    elif out.read_bytes(name) != canonical_json(record):
        yield f"{out.where(name)}: it is not canonical JSON"


def check_files(
    out: OutputFolder, name: str, expected: Mapping[str, str], *, kind: str, beside: Collection[str] = ()
) -> Iterator[str]:
    """Yield every difference between the files of a folder and their SHA-256 in a record, by reading every byte.

    Whatever else is below the folder is a difference too: some readers follow links to folders.

    Args:
        out: The folder.
        name: The file of the record, which the record itself does not name.
        expected: SHA-256 of each file.
        kind: What the record is called in messages.
        beside: Files that may be there although the record does not name them.
    """
    strangers = list(out.strangers())
    for stranger in strangers:
        named = f"though the {kind} names it" if stranger in expected else f"which the {kind} does not name"
        yield f"{out.where(stranger)}: not a file but a link or the like, {named}"
    present = set(out.files()) - {name, *beside}
    for missing in sorted(expected.keys() - present.union(strangers)):
        yield f"{out.where(missing)}: the {kind} names it, but it is missing"
    for unknown in sorted(present - expected.keys()):
        yield f"{out.where(unknown)}: the {kind} does not name it"
    for known in sorted(present & expected.keys()):
        found = out.hash(known)
        if found != expected[known]:
            yield f"{out.where(known)}: its SHA-256 is {found}, the {kind} says {expected[known]}"


def check_form(value: Any, form: Any, *, place: str = "") -> None:  # noqa: ANN401 - any JSON value
    """Check that a JSON value has what a form has; it may have more.

    Args:
        value: The value.
        form: A type, which it must be, `object` for any; a dict, whose keys it must have; a list of one form, that of
            its items; or a tuple of forms of several types, of which it must have one, such as `(None, str)`. The key
            `""` is the form of all values of an object.
        place: Where the value is, for messages.

    Raises:
        ValueError: Naming the first place that has another form.

    Example:
        >>> check_form({"shards": [{"rows": 1}]}, {"shards": [{"rows": int}]})
        >>> check_form({"shards": [{"rows": True}]}, {"shards": [{"rows": int}]})
        Traceback (most recent call last):
        ValueError: shards[0].rows is of another type than int
    """
    if isinstance(form, tuple):
        form = next((one for one in form if type(value) in (one, type(one))), form[-1])
    expected = form if isinstance(form, type) else type(form)
    found = type(value)  # not isinstance: for Python, true is a whole number
    if found is not expected and form is not object:
        raise ValueError(f"{place or 'it'} is of another type than {expected.__name__}")
    if isinstance(form, list):
        for number, item in enumerate(value):
            check_form(item, form[0], place=f"{place}[{number}]")
    elif isinstance(form, dict):
        for key in form:
            if key and key not in value:
                raise ValueError(f"{f'{place}.' if place else ''}{key} is missing")
        for key, item in value.items():
            if key in form or "" in form:
                check_form(item, form.get(key, form.get("")), place=f"{place}.{key}".lstrip("."))


@contextmanager
def reads_record(where: str, *, kind: str, advice: str = "") -> Iterator[None]:
    """Turn what reading the values of a record raises into an error that names it, and says what to do.

    Raises:
        IntegrityError: If the record lacks a value or has one of a wrong type.
    """
    try:
        yield
    except MALFORMED as error:
        raise IntegrityError(f"{_other_layout(where, error, kind=kind)}{advice and f'; {advice}'}") from error


def malformed(out: OutputFolder, name: str, error: Exception, *, kind: str) -> str:
    """Return the difference for a record that lacks a value or has one of a wrong type."""
    return _other_layout(out.where(name), error, kind=kind)


def _other_layout(where: str, error: Exception, *, kind: str) -> str:
    return f"{where}: not laid out as a {kind} ({type(error).__name__}: {error})"
