"""What the size of a vocabulary costs a model: parameters of its embedding, and work to train on a text.

A transformer of some width and layers has about 12 x layers x width^2 parameters besides its embedding, and training
takes about 6 operations per parameter and token (Kaplan et al. 2020, https://arxiv.org/abs/2001.08361, section 2.1).
The embedding's parameters take part in the logits. The cost of attention over longer contexts is left out, so fewer
tokens are worth more than these figures say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.errors import ConfigError

BYTES_A_PARAMETER = 2
"""In bfloat16."""

_OPERATIONS = 6
_MODEL = re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True)
class Model:
    """The shape of a transformer.

    Attributes:
        width: Numbers of an embedding.
        layers: Layers.
    """

    width: int
    layers: int

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.width}x{self.layers}"

    @property
    def body_parameters(self) -> int:
        """The parameters without the embedding."""
        return 12 * self.layers * self.width**2

    def embedding_parameters(self, vocab_size: int) -> int:
        """The parameters of one matrix of embeddings; a model whose logits have a matrix of their own has two."""
        return vocab_size * self.width

    def operations(self, vocab_size: int, tokens: float) -> float:
        """Return the operations that training on this many tokens takes."""
        return _OPERATIONS * (self.body_parameters + self.embedding_parameters(vocab_size)) * tokens


def parse_models(text: str, *, argument: str) -> list[Model]:
    """Return the models of a list as it was typed.

    Raises:
        ConfigError: If one is not a width and layers.

    Example:
        >>> [str(model) for model in parse_models("768x12,4096x32", argument="--models")]
        ['768x12', '4096x32']
    """
    found = [_MODEL.fullmatch(part.strip()) for part in text.split(",")]
    models = [Model(int(one[1]), int(one[2])) for one in found if one and int(one[1]) and int(one[2])]
    if len(models) < len(found):
        raise ConfigError(f"{argument} {text}: not a list of models; one is WIDTHxLAYERS, as 768x12,4096x32")
    return models
