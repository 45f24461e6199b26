"""A loader as a torch dataset: it splits the steps among workers, and yields tensors. Importing it needs torch.

    dataset = TokenDataset(Loader("OUT/tokens", batch_rows=8, place=Place(rank=rank, ranks=world_size)))
    loader = DataLoader(dataset, batch_size=None, num_workers=4, persistent_workers=True)
    while dataset.loader.epoch < epochs:
        for step, batch in enumerate(loader, start=1):
            ...
            checkpoint["data"] = dataset.loader.state_dict(steps=step)
        dataset.loader.next_epoch()

The loader makes the batches, so pass `batch_size=None`. Workers read the position when a `for` begins, so they may be
persistent. torchdata's StatefulDataLoader keeps and restores the state of each worker by itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cppmill_core._native import InvalidInputError
from cppmill_core.batches import Arrays, Ragged
from cppmill_core.loader import Loader, Place

__all__ = ["Batch", "TokenDataset", "as_tensors", "pad_bags"]

try:
    _torch: Any = importlib.import_module("torch")
    _data: Any = importlib.import_module("torch.utils.data")
except ImportError as missing:
    raise ImportError(
        "cppmill_core.torch_data needs torch: install it, or use cppmill_core.loader, which needs numpy alone"
    ) from missing

_NO_EPOCH = -1
_STATE = {"begun", "steps", "batch_rows", "place"}
_DTYPES = {_torch.int64, _torch.int32, _torch.uint8, _torch.bool, _torch.float16, _torch.float32, _torch.float64}
"""Of the tensors of a loader."""


class Batch(dict[str, Any]):
    """A step by column: tensors, and `Ragged` of tensors.

    From a worker it comes as one message, not as shared memory. torch would send a file descriptor for each tensor,
    which the consumer holds as long as the tensor lives; and /dev/shm is small in containers.
    """

    def to(self, device: Any, *, non_blocking: bool = False) -> Batch:  # noqa: ANN401 - what torch takes
        """Return the batch on a device; `non_blocking` for one in pinned memory."""
        return Batch(
            {name: _map(value, lambda t: t.to(device, non_blocking=non_blocking)) for name, value in self.items()}
        )

    def __copy__(self) -> Batch:
        """Return a batch of the same tensors, as torch needs it to convert or pin them."""
        return Batch(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the tensors of a loader as numpy arrays."""
        return _receive, ({name: _map(value, _to_array) for name, value in self.items()},)


class TokenDataset(_data.IterableDataset):  # type: ignore[misc]  # an optional package
    """The steps of a loader, split among the workers of a DataLoader.

    Args:
        loader: The position of the training, from now on in shared memory, where workers read it when a `for` begins.
            Iterating reads copies and does not move it, so its `state_dict` needs `steps`.
    """

    def __init__(self, loader: Loader) -> None:
        """Make a dataset of a loader."""
        super().__init__()
        self.loader = loader
        loader.read_by_copies = True
        loader.keep_position_in(_torch.zeros(2, dtype=_torch.int64).share_memory_())
        # The epoch that a loaded state ended: the next `for` after it begins the next one.
        self._ended = _torch.full((1,), _NO_EPOCH).share_memory_()
        self._begun = loader.at(loader.place)
        self._loaded_steps: int | None = None
        self._steps = 0

    def __iter__(self) -> Iterator[Batch]:
        """Yield this worker's batches up to the end of the epoch."""
        ended = int(self._ended)
        if self._loaded_steps is None and self.loader.epoch == ended:
            # Several workers may do this at once; all write the same.
            self.loader.consumed, self.loader.epoch = 0, ended + 1
            self._ended[0] = _NO_EPOCH
        self._steps, self._loaded_steps = self._loaded_steps or 0, None
        self._begun = self.loader.at(self._place())
        return self._batches(self._begun.at(self._begun.place))

    def _batches(self, reader: Loader) -> Iterator[Batch]:
        for batch in reader.batches(self._steps):
            self._steps += 1
            yield as_tensors(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return what this worker has made, for torchdata's StatefulDataLoader.

        Training loops save `loader.state_dict(steps=…)` instead: it is for any number of ranks and workers.
        """
        return {
            "begun": self._begun.state_dict(steps=0),
            "steps": self._steps,
            "batch_rows": self.loader.batch_rows,
            "place": asdict(self._begun.place),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after a `state_dict` of the same worker; all processes that share the loader see the position.

        Raises:
            InvalidInputError: If it is no state of a worker, or is for another order, number of ranks or workers, or
                `batch_rows`.
        """
        if not isinstance(state, Mapping) or not state.keys() >= _STATE or not isinstance(state["place"], Mapping):
            raise InvalidInputError(
                "the state is not that of a worker of a StatefulDataLoader; one of loader.state_dict(steps=…) is for "
                "loader.load_state_dict"
            )
        place, options = self._place(), {"batch_rows": self.loader.batch_rows}
        found = {**state["place"], "batch_rows": state["batch_rows"]}
        if found != asdict(place) | options:
            raise InvalidInputError(
                f"the state is for {found}, not for {asdict(place) | options}; the state of "
                "loader.state_dict(steps=…) is for any number of ranks and workers"
            )
        self.loader.load_state_dict(state["begun"])
        self._loaded_steps = state["steps"]
        if self.loader.at(place).ends_with(state["steps"]):
            self._ended[0] = self.loader.epoch

    def _place(self) -> Place:
        worker = _data.get_worker_info()
        if worker is None:
            return self.loader.place
        return replace(self.loader.place, worker=worker.id, workers=worker.num_workers)


def as_tensors(batch: Arrays) -> Batch:
    """Return a batch as tensors: integers as int64, which embeddings need; bytes stay uint8, offsets int32."""
    return Batch({name: _tensors(value) for name, value in batch.items()})


def pad_bags(column: Ragged, width: int) -> Any:  # noqa: ANN401 - a tensor
    """Return a column of lists as an int64 tensor [rows, width], filled with 0: the input of an `EmbeddingBag`.

    Args:
        column: Such as `batch["platform_ids"]`.
        width: The most ids of a row: 20 of `platform_ids`.

    Raises:
        InvalidInputError: If a row has more ids.

    Example:
        >>> EmbeddingBag(113, 64, mode="sum", padding_idx=0)(pad_bags(batch["platform_ids"], 20))
    """
    lengths = column.offsets.diff()
    if len(lengths) and lengths.max() > width:
        raise InvalidInputError(f"a row has {int(lengths.max())} ids, and width = {width}: use a larger one")
    padded = column.values.new_zeros((len(lengths), width), dtype=_torch.int64)
    padded[_torch.arange(width, device=lengths.device) < lengths[:, None]] = column.values.to(_torch.int64)
    return padded


def _tensors(value: Any) -> Any:  # noqa: ANN401 - an array, or Ragged
    if isinstance(value, Ragged):
        return Ragged(_tensors(value.values), _torch.from_numpy(value.offsets))
    widened = value.dtype.kind in "iu" and value.dtype != np.uint8
    return _torch.from_numpy(value.astype(np.int64) if widened else value)


def _map(value: Any, change: Any) -> Any:  # noqa: ANN401 - whatever a batch holds
    if isinstance(value, Ragged):
        return Ragged(_map(value.values, change), _map(value.offsets, change))
    return change(value) if isinstance(value, _torch.Tensor) else value


def _to_array(tensor: Any) -> Any:  # noqa: ANN401 - a tensor
    """Return the array of a tensor as a loader makes them; others stay, and torch sends them its own way."""
    ours = tensor.dtype in _DTYPES and tensor.device.type == "cpu" and not tensor.requires_grad
    return tensor.numpy() if ours else tensor


def _receive(columns: dict[str, Any]) -> Batch:
    return Batch({name: _from_arrays(value) for name, value in columns.items()})


def _from_arrays(value: Any) -> Any:  # noqa: ANN401 - whatever a batch holds
    if isinstance(value, Ragged):
        return Ragged(_from_arrays(value.values), _from_arrays(value.offsets))
    return _torch.from_numpy(value) if isinstance(value, np.ndarray) else value
