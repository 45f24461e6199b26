"""Finds the position of a loader in a checkpoint: where a training is in its dataset, and how it got there.

It is in the stamp (`cppmill_core.stamp(…, position=…)`), or anywhere in a dict that was saved as JSON or by torch: what
`Loader.state_dict` returns, or the state of torchdata's StatefulDataLoader. Torch is not needed, and nothing in a file
is executed: of a pickle only plain values are read.
"""

from __future__ import annotations

import json
import os
import pickle
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from cppmill_core._native import CorruptDataError, InvalidInputError
from cppmill_core.checkpoints import Checkpoint, read_stamp
from cppmill_core.loader import FORMAT

__all__ = ["read_position"]

_MAX_PICKLE_BYTES = 1 << 30
_ARCHIVE = b"PK\x03\x04"
"""What a file of torch begins with."""
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RuntimeError,
)
_FORM: Mapping[str, type] = {
    **dict.fromkeys(("epoch", "consumed", "seed", "streams"), Integral),
    **dict.fromkeys(("dataset", "tokenizer"), str),
    "shuffle": bool,
}
_LEAST = {"epoch": 0, "consumed": 0, "streams": 1}
_MOST = {"epoch": 1 << 20, "consumed": 1 << 63, "streams": 1 << 63}
"""No training has as many epochs; whoever asks for its steps goes through all of them."""
_WORKER = {"begun", "steps", "batch_rows", "place"}


def read_position(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """Return the position of the loader in a checkpoint.

    Args:
        checkpoint: What `stamp` takes, a file that torch saved, or a JSON file of a dict.

    Raises:
        OSError: If it cannot be read.
        CorruptDataError: If it is damaged.
        InvalidInputError: If it has none, or several that differ.
    """
    named = "the checkpoint" if isinstance(checkpoint, Mapping) else str(checkpoint)
    stamped = read_stamp(checkpoint)
    if stamped is not None and stamped.position is not None:
        _check_form(named, stamped.position)
        return stamped.position
    try:
        value = checkpoint if isinstance(checkpoint, Mapping) else _read(Path(checkpoint))
        found = list(_positions(value)) or list(_of_workers(value))
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptDataError(f"{named}: not the position of a loader ({type(error).__name__}: {error})") from error
    if not found:
        raise InvalidInputError(
            f"{named}: no position of a loader; save loader.state_dict(…) in it, or stamp it: stamp(…, position=…)"
        )
    if any(position != found[0] for position in found):
        raise InvalidInputError(f"{named}: {len(found)} positions that differ; give a checkpoint of one loader")
    _check_form(named, found[0])
    return found[0]


def _check_form(named: str, position: Mapping[str, Any]) -> None:
    """Check that a position has what a loader writes, of its types.

    Raises:
        CorruptDataError: Naming what it lacks.
    """
    for name, kind in _FORM.items():
        value: Any = position.get(name)
        is_other = not isinstance(value, kind) or (kind is Integral and isinstance(value, bool))
        if is_other or (name in _LEAST and not _LEAST[name] <= value < _MOST[name]):
            raise CorruptDataError(f"{named}: its {name} is {value!r}, and no loader writes such a position")
    source = position.get("source")
    if source is not None and not (isinstance(source, Mapping) and all(isinstance(v, str) for v in source.values())):
        raise CorruptDataError(f"{named}: its source is {source!r}, and no loader writes such a position")


def _positions(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - whatever a checkpoint holds
    """Yield the positions in a value, but not those of workers."""
    if isinstance(value, Mapping):
        if value.get("format") == FORMAT:
            yield value
        elif not value.keys() >= _WORKER:
            for part in value.values():
                yield from _positions(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _positions(part)


def _of_workers(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - whatever a checkpoint holds
    """Yield, for each rank, the position that the states of all workers of its StatefulDataLoader make.

    Raises:
        InvalidInputError: If a worker is missing, or has states that differ.
    """
    ranks: dict[int, dict[int, Mapping[str, Any]]] = {}
    for state in _workers(value):
        place = state["place"]
        if ranks.setdefault(place["rank"], {}).setdefault(place["worker"], state) != state:
            raise InvalidInputError(f"states of worker {place['worker']} of rank {place['rank']} that differ")
    for rank, states in ranks.items():
        first = next(iter(states.values()))
        if (found := sorted(states)) != list(range(first["place"]["workers"])):
            raise InvalidInputError(f"rank {rank} has {first['place']['workers']} workers, here are states of {found}")
        begun, rows = first["begun"], first["batch_rows"] * first["place"]["ranks"]
        yield {**begun, "consumed": begun["consumed"] + rows * sum(state["steps"] for state in states.values())}


def _workers(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - whatever a checkpoint holds
    if isinstance(value, Mapping):
        if value.keys() >= _WORKER:
            yield value
        else:
            for part in value.values():
                yield from _workers(part)


def _read(path: Path) -> Any:  # noqa: ANN401 - whatever a checkpoint holds
    if path.is_dir():
        return None
    with path.open("rb") as file:
        is_archive = _ARCHIVE.startswith(file.read(len(_ARCHIVE)))
    if is_archive or zipfile.is_zipfile(path):
        return _read_torch(path)
    try:
        return json.loads(path.read_bytes()) if path.suffix == ".json" else None
    except ValueError as error:
        raise CorruptDataError(f"{path}: not JSON ({error})") from error


def _read_torch(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - whatever a checkpoint holds
    """Return the plain values of a file that torch saved; everything else in it is a placeholder."""
    try:
        with zipfile.ZipFile(path) as file:
            for info in file.infolist():
                if info.filename.endswith("data.pkl") and info.file_size <= _MAX_PICKLE_BYTES:
                    with file.open(info) as pickled:
                        return _PlainUnpickler(pickled).load()
    except _UNREADABLE as error:
        raise CorruptDataError(f"{path}: damaged, not a checkpoint of torch ({error})") from error
    return None


class _Placeholder(dict[Any, Any]):
    """What stands for any object that is no plain value; it accepts whatever a pickle does with one."""

    def __init__(self, *_: Any) -> None:  # noqa: ANN401 - any argument
        """Take any arguments."""
        super().__init__()

    def __call__(self, *_: Any) -> _Placeholder:  # noqa: ANN401 - any argument
        """Return a placeholder, whatever this stands for."""
        return _Placeholder()

    def __setstate__(self, _: Any) -> None:  # noqa: ANN401 - any state
        """Take any state."""


class _PlainUnpickler(pickle.Unpickler):
    """Reads plain values: no class or function is looked up."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - a class
        """Return the class of placeholders; an ordered dict is a plain value."""
        return OrderedDict if (module, name) == ("collections", "OrderedDict") else _Placeholder

    def persistent_load(self, pid: Any) -> Any:  # noqa: ANN401 - any identifier
        """Return a placeholder of a tensor's data."""
        return _Placeholder(pid)
