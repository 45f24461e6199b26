"""A small decoder in plain torch, what it costs, and how it is trained: the model of `cppmill trial` and `toy.train`.

RMSNorm (Zhang and Sennrich 2019), rotary positions (Su et al. 2021), SwiGLU (Shazeer 2020), causal attention by torch's
`scaled_dot_product_attention`, no biases, and logits from the matrix of the embedding. There is no dropout, so with one
seed, one number of threads and one version of torch, training on a CPU gives the same numbers each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from cppmill_core._native import InvalidInputError

__all__ = ["IGNORED", "Decoder", "Shape", "learning_rate", "make_optimizer", "sum_losses", "train_step"]

Turns = tuple[Tensor, Tensor]
"""Cosines and sines of the rotary angles, [tokens, half of a head's width]."""

IGNORED = -100
"""The target of a place that has no loss."""

_HEAD_WIDTH = 64
_HIDDEN_MULTIPLE = 8
_ROTARY_BASE = 10_000.0
_INITIAL_DEVIATION = 0.02
_BETAS = (0.9, 0.95)
_WEIGHT_DECAY = 0.1
_MAX_NORM = 1.0
_WARMUP = 0.05
_DECAY = 0.3
_MAX_LOGITS = 1 << 25
"""Logits that are held at the same time, at least those of one row: 128 MB in float32."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a decoder.

    Attributes:
        vocab_size: Number of ids.
        width: Numbers per token; a multiple of 64, or an even number below.
        layers: Layers.
        length: Tokens per row.

    Example:
        >>> Shape(vocab_size=16_384, width=192, layers=4, length=256).flops_per_token
        30675456
    """

    vocab_size: int
    width: int
    layers: int
    length: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        if min(self.vocab_size, self.width, self.layers, self.length) < 1:
            raise InvalidInputError(f"{self}: all its numbers are 1 or more")
        fits = self.width % _HEAD_WIDTH == 0 if self.width >= _HEAD_WIDTH else self.width % 2 == 0
        if not fits:
            raise InvalidInputError(f"{self}: a width is a multiple of {_HEAD_WIDTH} or an even number below")

    @property
    def heads(self) -> int:
        """Heads of attention, each 64 wide, or as wide as the model."""
        return max(1, self.width // _HEAD_WIDTH)

    @property
    def hidden(self) -> int:
        """Width of the feed-forward layers: 8/3 of the model's, rounded up to a multiple of 8."""
        return -(-8 * self.width // (3 * _HIDDEN_MULTIPLE)) * _HIDDEN_MULTIPLE

    @property
    def body_parameters(self) -> int:
        """Parameters of all matrices but the embedding."""
        return self.layers * (4 * self.width**2 + 3 * self.width * self.hidden)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding, whose matrix also makes the logits."""
        return self.vocab_size * self.width

    @property
    def flops_per_token(self) -> int:
        """Floating-point operations to train on one token.

        6 per parameter that is multiplied with the token (2 forward, 4 backward; Kaplan et al. 2020, section 2.1): the
        body, and the embedding once, as the matrix of the logits. Looking up the input's row costs nothing. Attention
        adds 12 x layers x width per token that is attended to, on average (length + 1) / 2 of them, as it is causal.
        Norms, activations, the softmax and the optimizer are not counted.
        """
        matrices = 6 * (self.body_parameters + self.embedding_parameters)
        return matrices + 6 * self.layers * self.width * (self.length + 1)


class Decoder(nn.Module):  # type: ignore[misc]  # an optional package
    """The model.

    Args:
        shape: Its size.
        seed: Decides the initial weights. Those of the body are the same for any vocabulary.
    """

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        """Make the model with its initial weights, on the CPU."""
        super().__init__()
        self.shape = shape
        self.blocks = nn.ModuleList(_Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width)
        self.embed = nn.Embedding(shape.vocab_size, shape.width)
        generator = torch.Generator().manual_seed(seed)
        residual = _INITIAL_DEVIATION / (2 * shape.layers) ** 0.5
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.dim() > 1:
                    weights.normal_(
                        0.0, residual if name.endswith("out.weight") else _INITIAL_DEVIATION, generator=generator
                    )
        angles = torch.outer(
            torch.arange(shape.length), _ROTARY_BASE ** -torch.arange(0, 1, 2 * shape.heads / shape.width)
        )
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def forward(self, ids: Tensor, added: Tensor | None = None) -> Tensor:
        """Return what the logits are made from, [rows, tokens, width].

        Args:
            ids: int64 [rows, tokens], at most `length` tokens.
            added: Vectors [rows, tokens, width] that are added to the embeddings, such as those of platforms.
        """
        states = self.embed(ids) if added is None else self.embed(ids) + added
        turns = (self.cosines[: ids.shape[1]], self.sines[: ids.shape[1]])
        for block in self.blocks:
            states = block(states, turns)
        return self.norm(states)

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of states, [..., vocab_size]."""
        return functional.linear(states, self.embed.weight)

    @property
    def chunk_rows(self) -> int:
        """How many rows have their logits in memory at the same time."""
        return max(1, _MAX_LOGITS // (self.shape.vocab_size * self.shape.length))


class _Block(nn.Module):  # type: ignore[misc]
    """Attention, then feed-forward, each on normalised states and added to them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention, self.feed_forward = _Attention(shape), _FeedForward(shape)
        self.attention_norm, self.feed_forward_norm = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)

    def forward(self, states: Tensor, turns: Turns) -> Tensor:
        states = states + self.attention(self.attention_norm(states), turns)
        return states + self.feed_forward(self.feed_forward_norm(states))


class _Attention(nn.Module):  # type: ignore[misc]
    """Causal self-attention with rotary positions."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query_key_value = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, states: Tensor, turns: Turns) -> Tensor:
        rows, tokens, width = states.shape
        heads = self.query_key_value(states).view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind()
        attended = functional.scaled_dot_product_attention(
            _rotate(query, turns).to(value.dtype), _rotate(key, turns).to(value.dtype), value, is_causal=True
        )
        return self.out(attended.transpose(1, 2).reshape(rows, tokens, width))


class _FeedForward(nn.Module):  # type: ignore[misc]
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_and_value = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.out = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        gate, value = self.gate_and_value(states).chunk(2, dim=-1)
        return self.out(functional.silu(gate) * value)


def _rotate(vectors: Tensor, turns: Turns) -> Tensor:
    """Turn the halves of vectors [rows, heads, tokens, numbers] by the angles of their places."""
    cosines, sines = turns
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, first * sines + second * cosines], dim=-1)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Return AdamW over all parameters; matrices other than embeddings decay."""
    embeddings = {id(one.weight) for one in model.modules() if isinstance(one, nn.Embedding | nn.EmbeddingBag)}
    decays = [one for one in model.parameters() if one.dim() > 1 and id(one) not in embeddings]
    stays = [one for one in model.parameters() if one.dim() == 1 or id(one) in embeddings]
    groups = [{"params": decays, "weight_decay": _WEIGHT_DECAY}, {"params": stays, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=_BETAS)


def learning_rate(step: int, steps: int, highest: float) -> float:
    """Return the learning rate of a step: it rises for 5 % of the steps, and falls to 0 in the last 30 %.

    Args:
        step: Number of the step, from 0.
        steps: How many steps there are.
        highest: The rate in between.

    Example:
        >>> [learning_rate(step, 100, 0.01) for step in (0, 50, 85)]
        [0.002, 0.01, 0.005]
    """
    rises, falls = (step + 1) / max(1.0, _WARMUP * steps), (steps - step) / max(1.0, _DECAY * steps)
    return highest * min(1.0, rises, falls)


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, rows: Sequence[Tensor], rate: float, device: str
) -> float:
    """Train on some rows and return their mean loss, in nats per target.

    Args:
        model: What `model(inputs, …)` and `model.logits` are called on; has `chunk_rows`.
        optimizer: Of `make_optimizer`.
        rows: The targets [rows, tokens], `IGNORED` where there is none, then what the model is called with.
        rate: The learning rate.
        device: `cpu`; or `cuda`, on which products are made in bfloat16.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    count, total = max(1, int((rows[0] != IGNORED).sum())), 0.0
    for loss in sum_losses(model, rows, device):
        (loss / count).backward()
        total += float(loss.detach())
    nn.utils.clip_grad_norm_(model.parameters(), _MAX_NORM)
    optimizer.step()
    return total / count


def sum_losses(model: nn.Module, rows: Sequence[Tensor], device: str) -> Iterator[Tensor]:
    """Yield the sum of the losses, in nats, of as many rows as fit at a time; arguments as for `train_step`."""
    for targets, *inputs in zip(*(tensor.split(model.chunk_rows) for tensor in rows), strict=True):
        with _precision(device):
            logits = model.logits(model(*(tensor.to(device, non_blocking=True) for tensor in inputs)))
        places = targets.to(device, non_blocking=True).flatten()
        yield functional.cross_entropy(logits.flatten(0, 1).float(), places, ignore_index=IGNORED, reduction="sum")


def _precision(device: str) -> AbstractContextManager[None]:
    if device == "cpu":
        return nullcontext()
    found: AbstractContextManager[None] = torch.autocast(device, dtype=torch.bfloat16)
    return found
