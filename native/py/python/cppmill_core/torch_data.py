"""A loader as a torch dataset: it splits the steps among workers, and yields tensors. Importing it needs torch.

    dataset = TokenDataset(Loader("OUT/tokens", batch_rows=8, place=Place(rank=rank, ranks=world_size)))
    for step, batch in enumerate(DataLoader(dataset, batch_size=None, num_workers=4), start=1):
        ...
        checkpoint["data"] = dataset.loader.state_dict(steps=step)
    dataset.loader.next_epoch()

The loader makes the batches, so pass `batch_size=None`. Persistent workers would repeat the epoch, because they keep
the loader that they were started with.
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


class TokenDataset(_data.IterableDataset):  # type: ignore[misc]  # an optional package
    """The steps of a loader, split among the workers of a DataLoader.

    Args:
        loader: The position of the training. Iterating reads copies and does not move it, so its `state_dict` needs
            `steps` from now on.
    """

    def __init__(self, loader: Loader) -> None:
        """Make a dataset of a loader."""
        super().__init__()
        self.loader = loader
        loader.read_by_copies = True

    def __iter__(self) -> Iterator[Row]:
        """Yield this worker's batches up to the end of the epoch, with numbers as tensors."""
        worker = _data.get_worker_info()
        place = self.loader.place
        if worker is not None:
            place = replace(place, worker=worker.id, workers=worker.num_workers)
        for batch in self.loader.at(place).batches():
            yield as_tensors(batch)


def as_tensors(batch: Row) -> Row:
    """Return a batch with its arrays as tensors: integers as int64, which embeddings need; strings unchanged."""
    return {name: _tensor(value) for name, value in batch.items()}


def _tensor(value: Any) -> Any:  # noqa: ANN401 - a column of any type
    if isinstance(value, list):
        return [_tensor(entry) for entry in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return value
    return _torch.from_numpy(value.astype(np.int64) if value.dtype.kind in "iu" else value)
