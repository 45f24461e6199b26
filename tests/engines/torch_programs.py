"""What the tests of torch do with it, in a process of its own; each function returns plain values.

The process is the tests' environment with the packages of `make engines NAME=torch` behind it.
"""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.reduction
import pickle
import resource
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cppmill_core.batches import Ragged
from cppmill_core.loader import Loader, Place
from cppmill_core.working_set import torch_logit_mask

from schemas.tables import PLATFORM_VOCAB_SIZE
from tests.token_shards import loader_of

BATCH_ROWS = 4
MAX_FILES = 64
OPEN_FILES = Path("/proc/self/fd")


def begin(site: str) -> None:
    """Prepare the process: find torch behind all else, and take warnings as errors."""
    sys.path.append(site)
    # This process was spawned; its workers are forked, as is usual.
    multiprocessing.set_start_method("fork", force=True)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="This DataLoader will create .* worker processes")
    # Of torchdata.
    warnings.filterwarnings("ignore", message=".set_vital. is deprecated")


def dataset_of(folder: Path, **options: Any) -> Any:
    from cppmill_core.torch_data import TokenDataset

    return TokenDataset(loader_of(folder, BATCH_ROWS, **options))


def torch_loader(dataset: Any, workers: int, **options: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def stateful_loader(dataset: Any, workers: int, **options: Any) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, **options)


def numbers(batches: Any) -> list[list[int]]:
    return [batch["number"].tolist() for batch in batches]


def read_epoch(folder: Path, workers: int, *, rank: int = 0, ranks: int = 1, start: str = "fork") -> list[list[int]]:
    """The steps of an epoch."""
    dataset = dataset_of(folder, place=Place(rank=rank, ranks=ranks))
    return numbers(torch_loader(dataset, workers, multiprocessing_context=start if workers else None))


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors of a column."""
    for part in value if isinstance(value, Ragged) else [value]:
        yield from tensors_of(part) if isinstance(part, Ragged) else [part]


def compare_columns(folder: Path, workers: int) -> dict[str, list[str]]:
    """The types of all columns' tensors, after a comparison of each step with the arrays of the loader."""
    from cppmill_core.torch_data import Batch, TokenDataset

    arrays = Loader(folder, batch_rows=BATCH_ROWS).batches()
    found: dict[str, list[str]] = {}
    for batch in torch_loader(TokenDataset(Loader(folder, batch_rows=BATCH_ROWS)), workers):
        expected = next(arrays)
        assert type(batch) is Batch
        assert list(batch) == list(expected)
        for name, value in batch.items():
            assert isinstance(value, Ragged) == isinstance(expected[name], Ragged)
            for tensor, array in zip(tensors_of(value), tensors_of(expected[name]), strict=True):
                assert np.array_equal(tensor.numpy(), array)
            found[name] = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors_of(value)]
    assert next(arrays, None) is None
    return found


def hold_batches(folder: Path, epochs: int) -> tuple[int, int, int]:
    """Keep all batches of some epochs while few files may be open: how many, and the files open before and after."""
    from cppmill_core.torch_data import TokenDataset

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    dataset = TokenDataset(Loader(folder))
    loader = torch_loader(dataset, 1)
    gc.collect()
    before = len(list(OPEN_FILES.iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, hard))
    try:
        held = [batch for _ in range(epochs) for batch in loader]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    gc.collect()
    return len(held), before, len(list(OPEN_FILES.iterdir()))


def pin_columns(folder: Path) -> tuple[str, int, int]:
    """Pin a batch as a DataLoader does: the type of what comes, its tensors, and those that were pinned.

    Without an accelerator there is no memory to pin, so a clone stands for it.
    """
    import torch
    from cppmill_core.torch_data import TokenDataset
    from torch.utils.data._utils.pin_memory import pin_memory

    pinned = []

    def pin(tensor: Any) -> Any:
        pinned.append(tensor.clone())
        return pinned[-1]

    real = torch.Tensor.pin_memory
    torch.Tensor.pin_memory = real if torch.accelerator.is_available() else pin
    try:
        batch = pin_memory(next(iter(TokenDataset(Loader(folder, batch_rows=BATCH_ROWS)))))
    finally:
        torch.Tensor.pin_memory = real
    tensors = [tensor for value in batch.values() for tensor in tensors_of(value)]
    there = sum(tensor.is_pinned() or any(tensor is other for other in pinned) for tensor in tensors)
    return type(batch).__name__, len(tensors), there


def read_pinned(folder: Path) -> list[list[int]]:
    """The steps of an epoch with `pin_memory`, which only warns where there is no accelerator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return numbers(torch_loader(dataset_of(folder), 1, pin_memory=True))


def move_batch(folder: Path) -> set[str]:
    """The devices of a batch's tensors after it was moved."""
    from cppmill_core.torch_data import TokenDataset

    batch = next(iter(TokenDataset(Loader(folder)))).to("meta", non_blocking=True)
    return {tensor.device.type for value in batch.values() for tensor in tensors_of(value)}


def send_other_columns() -> tuple[list[str], bool]:
    """Send a batch that has more than a loader's columns to another process and back."""
    import torch
    from cppmill_core.torch_data import Batch

    sent = Batch(half=torch.ones(2, dtype=torch.bfloat16), weight=torch.ones(1, requires_grad=True), name="a")
    batch = pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(sent))
    return list(batch), bool((batch["half"] == sent["half"]).all()) and batch["weight"].requires_grad


def read_epochs_persistently(folder: Path, epochs: int) -> tuple[list[list[list[int]]], int]:
    """The steps of some epochs by workers that stay, and how many processes these were."""
    dataset = dataset_of(folder)
    loader = torch_loader(dataset, 2, persistent_workers=True)
    found, processes = [], set()
    for _ in range(epochs):
        found.append(numbers(loader))
        processes |= {worker.pid for worker in loader._iterator._workers}
        dataset.loader.next_epoch()
    return found, len(processes)


def resume_persistently(folder: Path, state: dict[str, Any]) -> list[list[list[int]]]:
    """The steps of an epoch by workers that stay, and those after a position was loaded."""
    dataset = dataset_of(folder)
    loader = torch_loader(dataset, 2, persistent_workers=True)
    whole = numbers(loader)
    dataset.loader.load_state_dict(state)
    return [whole, numbers(loader)]


def break_off(folder: Path, steps: int, workers: int) -> tuple[list[list[int]], dict[str, Any]]:
    """The first steps of an epoch, and the position behind them."""
    dataset = dataset_of(folder)
    found = []
    for step, batch in enumerate(torch_loader(dataset, workers), start=1):
        found.append(batch["number"].tolist())
        if step == steps:
            break
    return found, dataset.loader.state_dict(steps=steps)


def resume(folder: Path, state: dict[str, Any], workers: int) -> list[list[int]]:
    """The steps from a position to the end of its epoch."""
    dataset = dataset_of(folder)
    dataset.loader.load_state_dict(state)
    return numbers(torch_loader(dataset, workers))


def resume_stateful(folder: Path, steps: int, workers: int, *, after: bool) -> list[list[list[int]]]:
    """The steps of two epochs: those up to a state of a StatefulDataLoader, and what another one makes of it.

    Args:
        folder: The dataset.
        steps: Take the state in the loop, after so many steps.
        workers: Their number.
        after: Take it after the first epoch instead.
    """
    dataset = dataset_of(folder)
    loader = stateful_loader(dataset, workers)
    begun: list[list[int]] = []
    state: dict[str, Any] = {}
    for batch in loader:
        begun.append(batch["number"].tolist())
        if len(begun) == steps and not after:
            state = loader.state_dict()
            break
    state = pickle.loads(pickle.dumps(state or loader.state_dict()))
    resumed = dataset_of(folder)
    other = stateful_loader(resumed, workers)
    other.load_state_dict(state)
    epochs = [begun]
    while resumed.loader.epoch < 2:
        epochs.append(numbers(other))
        resumed.loader.next_epoch()
    return epochs


def read_epochs_stateful(folder: Path, epochs: int, **options: Any) -> list[list[list[int]]]:
    """The steps of some epochs by a StatefulDataLoader."""
    dataset = dataset_of(folder)
    loader = stateful_loader(dataset, 2, **options)
    found = []
    while dataset.loader.epoch < epochs:
        found.append(numbers(loader))
        dataset.loader.next_epoch()
    return found


def load_state_of_another(folder: Path, changes: dict[str, Any] | None = None, **options: Any) -> str:
    """What is said to a state of a dataset with other options, or with changes; a key that is None is left out."""
    from cppmill_core import InvalidInputError

    state = dataset_of(folder).state_dict() | (changes or {})
    try:
        dataset_of(folder, **options).load_state_dict({key: value for key, value in state.items() if value is not None})
    except InvalidInputError as error:
        return str(error)
    return ""


def run_page(blocks: list[tuple[str, int]], names: dict[str, Any]) -> tuple[list[list[str]], dict[str, Any]]:
    """Run blocks of a page, each with a number of epochs: the columns of each `train(batch)`, and the checkpoint."""
    trained: list[list[str]] = []
    names |= {"train": lambda batch: trained.append(sorted(batch)), "checkpoint": {}}
    for code, epochs in blocks:
        names["epochs"] = epochs
        exec(compile(code, "page", "exec"), names)
    return trained, names["checkpoint"]


def pad_ids(folder: Path, width: int) -> list[list[int]]:
    """All platform ids of a dataset, padded; the embeddings of their bags are compared with those of the lists."""
    import torch
    from cppmill_core.torch_data import TokenDataset, pad_bags

    bags = torch.nn.EmbeddingBag(PLATFORM_VOCAB_SIZE, 8, mode="sum", padding_idx=0)
    found: list[list[int]] = []
    for batch in TokenDataset(Loader(folder, columns=["platform_ids"], batch_rows=BATCH_ROWS)):
        ids, offsets = batch["platform_ids"]
        padded = pad_bags(batch["platform_ids"], width)
        assert torch.allclose(bags(padded), bags(ids, offsets[:-1].long()))
        found += padded.tolist()
    return found


def refuse_narrow_bags() -> str:
    """What is said to a row that is longer than the width."""
    import torch
    from cppmill_core import InvalidInputError
    from cppmill_core.torch_data import pad_bags

    try:
        pad_bags(Ragged(torch.arange(3), torch.tensor([0, 3], dtype=torch.int32)), 2)
    except InvalidInputError as error:
        return str(error)
    return ""


def make_mask(ids: list[int], size: int) -> tuple[str, list[float]]:
    """The type and the values of a mask."""
    import torch

    mask = torch_logit_mask(ids, size, dtype=torch.float64)
    return str(mask.dtype), mask.tolist()


def read_candidates(folder: Path, columns: tuple[str, ...] | None, work: Path) -> list[str]:
    """What each candidate of the benchmark has read of an epoch."""
    from benches.speed.loading import PREPARE, Reading, run_epoch

    reading = Reading(folder=folder, columns=columns, batch_rows=8, workers=1, work=work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [str(run_epoch(prepare(reading)).digest) for prepare in PREPARE.values()]


IDS, PADDED, WIDTH = 40, 48, 8


def small_model(*, tied: bool, dtype: str = "float32") -> Any:
    """An embedding and an output layer, the same parameter or two, with more rows than ids."""
    import torch

    torch.manual_seed(5)
    model = torch.nn.ModuleDict(
        {"embed_tokens": torch.nn.Embedding(PADDED, WIDTH), "lm_head": torch.nn.Linear(WIDTH, PADDED, bias=False)}
    )
    if tied:
        model["lm_head"].weight = model["embed_tokens"].weight
    return model.to(getattr(torch, dtype))


def forward(model: Any, ids: Any) -> Any:
    return model["lm_head"](model["embed_tokens"](ids))


def compare_logits(mask: Any, dtype: str) -> tuple[bool, bool, list[str]]:
    """Whether logits differ by the bias alone and without a hook by nothing, and the buffers of the checkpoint."""
    import torch
    from cppmill_core.masks.torch_masks import add_bias

    model, ids = small_model(tied=False, dtype=dtype), torch.arange(12).reshape(3, 4)
    plain = forward(model, ids)
    hook = add_bias(model["lm_head"], mask)
    masked = forward(model, ids)
    bias = torch.from_numpy(mask.bias(PADDED)).to(plain.dtype)
    names = [name for name, _ in model.named_buffers() if name in model.state_dict()]
    hook.remove()
    return bool(torch.equal(masked, plain + bias)), bool(torch.equal(forward(model, ids), plain)), names


def sample_masked(mask: Any, count: int) -> list[int]:
    """The distinct ids that a masked model samples."""
    import torch
    from cppmill_core.masks.torch_masks import add_bias

    model = small_model(tied=False)
    add_bias(model["lm_head"], mask)
    with torch.no_grad():
        chances = torch.softmax(forward(model, torch.arange(4)), dim=-1)
    return sorted(set(torch.multinomial(chances, count, replacement=True).flatten().tolist()))


def train_frozen(folder: Path, mask: Any, optimizer: str, steps: int, *, tied: bool, freeze: bool) -> dict[str, bool]:
    """Train with weight decay, momentum and clipping, after some steps without a freeze; save base and tuned model.

    Whether frozen rows, and all others, moved, for each layer.
    """
    import torch
    from cppmill_core import VocabStamp, stamp
    from cppmill_core.masks.torch_masks import add_bias, freeze_rows
    from safetensors.torch import save_model

    model = small_model(tied=tied)
    add_bias(model["lm_head"], mask)
    options = {"SGD": {"momentum": 0.9, "nesterov": True}, "AdamW": {"fused": True}}.get(optimizer, {})
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05, weight_decay=0.1, **options)

    def step() -> None:
        made.zero_grad()
        ids = torch.randint(0, IDS, (4, 16))
        allowed = torch.from_numpy(mask.bias(PADDED)[:IDS]) > -torch.inf
        targets = torch.nonzero(allowed).flatten()[torch.randint(0, int(allowed.sum()), (4, 16))]
        torch.nn.functional.cross_entropy(forward(model, ids).flatten(0, 1), targets.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        made.step()

    for _ in range(steps):
        step()
    layers = {name: model[name].weight for name in ("embed_tokens", "lm_head")}
    before = {name: weight.detach().clone() for name, weight in layers.items()}
    named = VocabStamp(tokenizer=mask.tokenizer, revision="", vocab_size=IDS)
    save_model(model, str(folder / "base.safetensors"))
    if freeze:
        for weight in set(layers.values()):
            freeze_rows(weight, mask.frozen, made)
    for _ in range(steps):
        step()
    save_model(model, str(folder / "tuned.safetensors"))
    for name in ("base", "tuned"):
        stamp(folder / f"{name}.safetensors", named)
    moved = {name: (weight.detach() != before[name]).any(dim=1) for name, weight in layers.items()}
    frozen = torch.zeros(PADDED, dtype=torch.bool)
    frozen[list(mask.frozen)] = True
    return {
        "frozen rows moved": any(bool(rows[frozen].any()) for rows in moved.values()),
        "all others moved": all(bool(rows[~frozen].all()) for rows in moved.values()),
    }


def thaw(mask: Any) -> tuple[bool, bool]:
    """Whether the frozen rows move after one step, and after one more without the freeze."""
    import torch
    from cppmill_core.masks.torch_masks import freeze_rows

    model = small_model(tied=True)
    weight = model["lm_head"].weight
    made = torch.optim.AdamW([weight], lr=0.05)
    frozen, before = freeze_rows(weight, mask.frozen, made), weight.detach().clone()
    found = []
    for _ in range(2):
        forward(model, torch.arange(IDS)).square().sum().backward()
        made.step()
        found.append(bool((weight.detach() != before)[list(mask.frozen)].any()))
        frozen.remove()
    return found[0], found[1]


def refuse_ids(ids: list[int]) -> str:
    """What is said to ids that have no row."""
    import torch
    from cppmill_core import InvalidInputError
    from cppmill_core.masks.torch_masks import freeze_rows

    model = small_model(tied=True)
    made = torch.optim.SGD(model.parameters())
    try:
        freeze_rows(model["lm_head"].weight, ids, made)
    except InvalidInputError as error:
        return str(error)
    return ""


def save_checkpoint(path: Path, shards: Path, steps: int, workers: int) -> dict[str, Any]:
    """Save what a training saves, with the position in it, by torch; and the position of a StatefulDataLoader."""
    import torch

    dataset, model = dataset_of(shards), small_model(tied=True)
    made = torch.optim.AdamW(model.parameters())
    forward(model, torch.arange(IDS)).sum().backward()
    made.step()
    loader = stateful_loader(dataset, workers)
    for number, _ in enumerate(loader, start=1):
        if number == steps:
            break
    state = dataset.loader.state_dict(steps=steps)
    parts = {"model": model.state_dict(), "optimizer": made.state_dict(), "rng": torch.get_rng_state()}
    torch.save({**parts, "data": state}, path / "loader.pt")
    torch.save({**parts, "data": loader.state_dict()}, path / "stateful.pt")
    return state
