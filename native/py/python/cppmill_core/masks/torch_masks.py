"""Masks in torch: a bias that a model adds to its logits, and rows that no optimizer moves. Importing it needs torch.

    add_bias(model.lm_head, mask)
    frozen = freeze_rows(model.embed_tokens.weight, mask.frozen, optimizer)

The bias is a buffer of the model, so checkpoints have it, and `masks.receipts` finds it there.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from cppmill_core._native import InvalidInputError
from cppmill_core.masks import Mask
from cppmill_core.masks.receipts import BIAS

__all__ = ["FrozenRows", "LogitBias", "add_bias", "freeze_rows"]

try:
    _torch: Any = importlib.import_module("torch")
except ImportError as missing:
    raise ImportError(
        "masks.torch_masks needs torch: install it, or add Mask.bias(), which needs numpy alone"
    ) from missing


class LogitBias(_torch.nn.Module):  # type: ignore[misc]  # an optional package
    """Adds the bias of a mask to logits; a float32 buffer, [size].

    Args:
        mask: The mask.
        size: Length of the logits, with padding.
    """

    def __init__(self, mask: Mask, size: int | None = None) -> None:
        """Keep the bias of a mask."""
        super().__init__()
        self.register_buffer("bias", _torch.from_numpy(mask.bias(size)))

    def forward(self, logits: Any) -> Any:  # noqa: ANN401 - a tensor
        """Return logits, [..., size], with the bias, in their own type."""
        return logits + self.bias.to(logits.dtype)


def add_bias(head: Any, mask: Mask) -> Any:  # noqa: ANN401 - a module
    """Make an output layer add the bias of a mask to all logits that it returns.

    Args:
        head: The layer, such as `torch.nn.Linear`, with a row of `weight` per id; it gets the submodule `logit_mask`.
        mask: The mask.

    Returns:
        The handle of the hook; its `remove()` ends it.

    Raises:
        InvalidInputError: If the layer has fewer rows than there are ids.
    """
    bias = LogitBias(mask, len(head.weight)).to(head.weight.device)
    head.add_module(BIAS.partition(".")[0], bias)
    return head.register_forward_hook(lambda _module, _inputs, logits: bias(logits))


class FrozenRows:
    """Rows of a parameter that stay as they are, bit by bit.

    Their gradients are zeroed, so that they do not count when gradients are clipped. After each step of the optimizer
    they are written back, because weight decay moves a row without a gradient, and so does momentum from before.
    """

    def __init__(self, parameter: Any, ids: Sequence[int], optimizer: Any) -> None:  # noqa: ANN401 - of torch
        """Freeze rows from now on."""
        if not ids or max(ids) >= len(parameter) or min(ids) < 0:
            named = f"ids {min(ids)} to {max(ids)}" if ids else "no ids"
            raise InvalidInputError(f"{named}: the parameter has {len(parameter)} rows")
        self._parameter = parameter
        self._rows = _torch.tensor(list(ids), dtype=_torch.int64, device=parameter.device)
        self._kept = parameter.detach()[self._rows].clone()
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._zero),
            optimizer.register_step_post_hook(self._restore),
        ]

    def _zero(self, parameter: Any) -> None:  # noqa: ANN401 - of torch
        parameter.grad[self._rows] = 0

    def _restore(self, *_: Any) -> None:  # noqa: ANN401 - what torch gives a hook
        with _torch.no_grad():
            self._parameter[self._rows] = self._kept

    def remove(self) -> None:
        """Let the rows learn again."""
        for handle in self._handles:
            handle.remove()


def freeze_rows(parameter: Any, ids: Sequence[int], optimizer: Any) -> FrozenRows:  # noqa: ANN401 - of torch
    """Freeze rows of an embedding or output layer, whatever the optimizer and its weight decay.

    Freeze an embedding and an output layer each, unless they are tied, and so one parameter.

    Args:
        parameter: A dense parameter with a row per id.
        ids: The ids, such as `mask.frozen`.
        optimizer: The optimizer of the parameter.

    Raises:
        InvalidInputError: If there are no ids, or an id has no row.
    """
    return FrozenRows(parameter, ids, optimizer)
