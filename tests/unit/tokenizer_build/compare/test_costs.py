"""The costs of a vocabulary are those of published models."""

from __future__ import annotations

import pytest

from schemas.errors import ConfigError
from tokenizer_build.compare.costs import Model, parse_models


def test_gpt_2_has_its_published_parameters() -> None:
    """124 million in the smallest one, of which 38.6 are the embedding of 50,257 ids."""
    model = Model(width=768, layers=12)
    embedding = model.embedding_parameters(50_257)
    assert round(embedding / 1e6, 1) == 38.6
    assert round((embedding + model.body_parameters) / 1e6) == 124


def test_training_takes_six_operations_a_parameter_and_token() -> None:
    assert Model(2, 1).operations(vocab_size=10, tokens=3) == 6 * (48 + 20) * 3


@pytest.mark.parametrize("text", ["", "768", "768x", "0x3", "768x12,", "ax3"])
def test_what_is_not_a_model_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="one is WIDTHxLAYERS"):
        parse_models(text, argument="--models")
