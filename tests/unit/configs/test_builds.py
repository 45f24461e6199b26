"""Options of a build that do not go together are told before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from configs.runs import load_run_config
from schemas.errors import ConfigError
from schemas.options import BuildOptions

SMALL = "not allowed; a vocabulary of the kind"


def problems(tmp_path: Path, build: str, **flags: str) -> list[str]:
    file = tmp_path / "run.toml"
    file.write_text(f"[build]\n{build}\n")
    try:
        load_run_config(file=file, flags={"--out": str(tmp_path / "out"), **flags})
    except ConfigError as error:
        return [line.removeprefix(f"{file}: ") for line in str(error).splitlines()]
    return []


@pytest.mark.parametrize(
    ("build", "said"),
    [
        ("vocab_size = 7199", [f"build.vocab_size = 7199: {SMALL} bpe has 7,200 ids before any is learned"]),
        ("vocab_size = 7200", []),
        ('kind = "sentencepiece-bpe"\nvocab_size = 1000', []),
        (
            'kind = "sentencepiece-unigram"\nvocab_size = 319',
            [f"build.vocab_size = 319: {SMALL} sentencepiece-unigram has 320 ids before any is learned"],
        ),
        (
            'kind = "sentencepiece-bpe"\nmax_token_bytes = 9',
            ["build.max_token_bytes = 9: a vocabulary of the kind sentencepiece-bpe has no such option; leave it out"],
        ),
        (
            'kind = "sentencepiece-bpe"\nhf_template = "bos"',
            ['build.hf_template = "bos": a vocabulary of the kind sentencepiece-bpe has no such option; leave it out'],
        ),
        ('kind = "sentencepiece-bpe"\nhf_template = "none"', []),
        ('kind = "wordpiece"', None),
    ],
)
def test_a_size_or_an_option_that_the_kind_does_not_have_is_reported(
    build: str, said: list[str] | None, tmp_path: Path
) -> None:
    found = problems(tmp_path, build)
    assert found == said if said is not None else "sentencepiece-unigram" in found[0]


@pytest.mark.parametrize(
    ("template", "policy", "missing"),
    [
        ("none", "bos = false\neos = false", []),
        ("bos", "eos = false", []),
        ("bos", "bos = false", ["bos"]),
        ("bos-eos", "", []),
        ("bos-eos", "eos = false", ["eos"]),
        ("bos-eos", "bos = false\neos = false", ["bos", "eos"]),
    ],
)
def test_a_template_that_adds_what_documents_do_not_have_is_reported(
    template: str, policy: str, missing: list[str], tmp_path: Path
) -> None:
    found = problems(tmp_path, f'hf_template = "{template}"\n[tokenize]\n{policy}')
    assert found == [
        f'build.hf_template = "{template}": documents have no <{key.upper()}>, because {key} = false in [tokenize]'
        for key in missing
    ]


def test_superwords_are_not_for_sentencepiece(tmp_path: Path) -> None:
    found = problems(tmp_path, 'kind = "sentencepiece-bpe"', **{"--profile": "hybrid-64k-superwords"})
    assert any("superwords_after" in line and "no such option" in line for line in found)


def test_a_vocabulary_of_ones_own_is_not_for_sentencepiece(tmp_path: Path) -> None:
    own = {"--vocab": str(Path(__file__).parents[3] / "configs" / "vocab")}
    assert problems(tmp_path, 'kind = "bpe"', **own) == []
    found = problems(tmp_path, 'kind = "sentencepiece-bpe"', **own)
    assert [line for line in found if line.startswith("--vocab ") and "no fixed tokens" in line] == found != []


def test_the_size_of_a_given_tokenizer_may_be_any(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"vocab_size": 100}))
    given = {"--tokenizer": str(tmp_path), "--vocab-size": "100"}
    assert problems(tmp_path, "min_hits = 1", **given) == []


def test_the_kind_is_in_the_canonical_form_of_sentencepiece_alone() -> None:
    assert "kind" not in BuildOptions().to_json()
    assert BuildOptions(kind="sentencepiece-bpe").to_json()["kind"] == "sentencepiece-bpe"
