"""A loader as a torch dataset: it finds its worker, and gives tensors. Importing this module needs torch.

    dataset = TokenDataset(Loader("OUT/tokens", batch_rows=8, place=Place(rank=rank, ranks=world_size)))
    for step, batch in enumerate(DataLoader(dataset, batch_size=None, num_workers=4), start=1):
        ...
        checkpoint["data"] = dataset.loader.state_dict(steps=step)
    dataset.loader.next_epoch()

Batches are made by the loader, so `batch_size=None`. With persistent workers the next epoch would be the same one
again, as these keep the loader that they were started with.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cppmill_core.columns import Row
from cppmill_core.loader import Loader

__all__ = ["TokenDataset", "as_tensors"]

try:
    _torch: Any = importlib.import_module("torch")
    _data: Any = importlib.import_module("torch.utils.data")
except ImportError as missing:
    raise ImportError(
        "cppmill_core.torch_data needs torch: install it, or use cppmill_core.loader, which needs numpy alone"
    ) from missing


class TokenDataset(_data.IterableDataset):  # type: ignore[misc]  # torch may not be there
    """The steps of a loader, dealt to the workers of a DataLoader.

    Args:
        loader: Where the training stands. It is not moved by an iteration, as copies are read: from here on its
            `state_dict` needs `steps`.
    """

    def __init__(self, loader: Loader) -> None:
        """Take a loader."""
        super().__init__()
        self.loader = loader
        loader.read_by_copies = True

    def __iter__(self) -> Iterator[Row]:
        """Give the batches of this worker to the end of the epoch, numbers as tensors."""
        worker = _data.get_worker_info()
        place = self.loader.place
        if worker is not None:
            place = replace(place, worker=worker.id, workers=worker.num_workers)
        for batch in self.loader.at(place).batches():
            yield as_tensors(batch)


def as_tensors(batch: Row) -> Row:
    """Return a batch with its arrays as tensors: integers as int64, which embeddings take; strings as they are."""
    return {name: _tensor(value) for name, value in batch.items()}


def _tensor(value: Any) -> Any:  # noqa: ANN401 - a column of any type
    if isinstance(value, list):
        return [_tensor(entry) for entry in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return value
    return _torch.from_numpy(value.astype(np.int64) if value.dtype.kind in "iu" else value)
