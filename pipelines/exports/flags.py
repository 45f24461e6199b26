"""The program of `cppmill flags`: what pins a tokenizer in the command lines of training projects.

The names come from the projects' own parsers: Megatron-LM, megatron/training/arguments.py and
megatron/training/tokenizer/tokenizer.py; nanoGPT, train.py and configurator.py; transformers,
examples/pytorch/language-modeling/run_clm.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cppmill_core import AnyTokenizer, InvalidInputError

from pipelines.tokenizers.codec import load_tokenizer
from schemas.errors import ConfigError
from transforms.exports.shards.formats import BIN_HEADER_BYTES, megatron_type

_MEGATRON_UINT16_BELOW = 65_500
"""The bound of Megatron's own tools (`DType.optimal_dtype` of megatron/core/datasets/indexed_dataset.py)."""
_UINT16_IDS = 1 << 16

_HUGGING_FACE = "tokenizer.json"
_SENTENCEPIECE = "tokenizer.model"

_MEGATRON_DTYPES = {"bfloat16": ["--bf16"], "float16": ["--fp16"], "float32": []}
_TRANSFORMERS_DTYPES = {"bfloat16": ["--bf16", "True"], "float16": ["--fp16", "True"], "float32": []}
DTYPES = tuple(_MEGATRON_DTYPES)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What the flags are about.

    Attributes:
        folder: The tokenizer directory, absolute.
        digest: The tokenizer's digest.
        vocab_size: Number of its ids.
        divisible_by: The number that must divide the rows of a rank's embedding.
        tensor_parallel: Over how many ranks an embedding is split.
        bos: Id of `<BOS>`, None if there is none.
        eos: Id of `<EOS>`, None if there is none.
        dtype: Type of the model's numbers.
    """

    folder: Path
    digest: str
    vocab_size: int
    divisible_by: int
    tensor_parallel: int
    bos: int | None
    eos: int | None
    dtype: str

    @property
    def padded(self) -> int:
        """The rows of the embedding: the next multiple of `divisible_by` times `tensor_parallel`."""
        multiple = self.divisible_by * self.tensor_parallel
        return -(-self.vocab_size // multiple) * multiple


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Arguments of a command, and what else one must know.

    Attributes:
        arguments: One a word.
        token_dtype: Type of the ids in the data files that cppmill writes for the project; in its tensors without any.
        notes: Sentences.
    """

    arguments: list[str]
    token_dtype: str
    notes: list[str]


def _megatron(vocabulary: Vocabulary) -> Flags:
    ours = np.dtype(megatron_type(vocabulary.vocab_size)).name
    theirs = "uint16" if vocabulary.vocab_size < _MEGATRON_UINT16_BELOW else "int32"
    model = vocabulary.folder / _SENTENCEPIECE
    kind, path = ("GPTSentencePieceTokenizer", model) if model.is_file() else ("HuggingFaceTokenizer", model.parent)
    arguments = [
        *("--tokenizer-type", kind, "--tokenizer-model", str(path)),
        *("--vocab-size", str(vocabulary.vocab_size)),
        *("--make-vocab-size-divisible-by", str(vocabulary.divisible_by)),
        *("--tensor-model-parallel-size", str(vocabulary.tensor_parallel)),
        *_MEGATRON_DTYPES[vocabulary.dtype],
    ]
    return Flags(
        arguments=arguments,
        token_dtype=ours,
        notes=[
            f"cppmill shards --format megatron writes ids as {ours}; Megatron's own tools would write {theirs} (they "
            "use uint16 below 65,500 ids, else int32); Megatron reads both, because the .idx names the type"
        ],
    )


def _nanogpt(vocabulary: Vocabulary) -> Flags:
    if vocabulary.vocab_size > _UINT16_IDS:
        raise ConfigError(
            f"--for nanogpt: {vocabulary.vocab_size:,} ids, and its .bin files hold uint16; train a tokenizer of at "
            "most 65,536 ids, or use megatron"
        )
    pickled = f"{{'vocab_size': {vocabulary.padded}}}"
    return Flags(
        arguments=[f"--dtype={vocabulary.dtype}"],
        token_dtype="uint16",
        notes=[
            "no flag sets the vocabulary size: train.py takes it from data/DATASET/meta.pkl, or 50,304 without one; "
            f"write it: python -c \"import pickle; pickle.dump({pickled}, open('data/DATASET/meta.pkl', 'wb'))\"",
            "train.py maps data/DATASET/train.bin and val.bin, ids without a header; make them from the shards of "
            "cppmill shards with: for split in train val; do for shard in OUT/shards/*_${split}_*.bin; do "
            f'tail -c +{BIN_HEADER_BYTES + 1} "$shard"; done > data/DATASET/$split.bin; done',
            "no flag sets the tokenizer: sample.py expects stoi and itos in meta.pkl; make it encode and decode with "
            f"cppmill_core.load_tokenizer('{vocabulary.folder}')",
        ],
    )


def _transformers(vocabulary: Vocabulary) -> Flags:
    if not (vocabulary.folder / _HUGGING_FACE).is_file():
        raise ConfigError(f"--for transformers: {vocabulary.folder} has no {_HUGGING_FACE}, which transformers loads")
    named = {"vocab_size": vocabulary.padded, "bos_token_id": vocabulary.bos, "eos_token_id": vocabulary.eos}
    overrides = ",".join(f"{name}={value}" for name, value in named.items() if value is not None)
    return Flags(
        arguments=[
            *("--tokenizer_name", str(vocabulary.folder), "--config_overrides", overrides),
            *_TRANSFORMERS_DTYPES[vocabulary.dtype],
        ],
        token_dtype="int64",
        notes=[
            "--config_overrides is for training from scratch, with --model_type; if a loaded model has fewer rows than "
            "the tokenizer has ids, run_clm.py adds rows"
        ],
    )


PROJECTS: dict[str, Callable[[Vocabulary], Flags]] = {
    "megatron": _megatron,
    "nanogpt": _nanogpt,
    "transformers": _transformers,
}


def make_flags(
    project: str, tokenizer: Path, *, divisible_by: int, tensor_parallel: int, dtype: str
) -> tuple[Vocabulary, Flags]:
    """Return the flags that pin a tokenizer for a training project.

    Args:
        project: A key of `PROJECTS`.
        tokenizer: The tokenizer directory.
        divisible_by: The number that must divide the rows of a rank's embedding.
        tensor_parallel: Over how many ranks an embedding is split.
        dtype: One of `DTYPES`.

    Raises:
        ConfigError: For an unknown name, a number below 1, no tokenizer, or one that the project cannot use.
    """
    if project not in PROJECTS:
        raise ConfigError(f"--for {project}: not known; it takes {', '.join(PROJECTS)}")
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype {dtype}: not known; it takes {', '.join(DTYPES)}")
    for name, number in (("--divisible-by", divisible_by), ("--tensor-parallel", tensor_parallel)):
        if number < 1:
            raise ConfigError(f"{name} {number}: not allowed; it takes a whole number from 1")
    loaded = load_tokenizer(tokenizer)
    vocabulary = Vocabulary(
        folder=tokenizer.resolve(),
        digest=loaded.digest,
        vocab_size=loaded.vocab_size,
        divisible_by=divisible_by,
        tensor_parallel=tensor_parallel,
        bos=_control_id(loaded, "<BOS>"),
        eos=_control_id(loaded, "<EOS>"),
        dtype=dtype,
    )
    return vocabulary, PROJECTS[project](vocabulary)


def _control_id(tokenizer: AnyTokenizer, name: str) -> int | None:
    try:
        return tokenizer.control_id(name)
    except InvalidInputError:
        return None


def describe(vocabulary: Vocabulary, flags: Flags) -> dict[str, Any]:
    """Return the flags as one JSON object."""
    return {
        "arguments": flags.arguments,
        "tokenizer": {"path": str(vocabulary.folder), "digest": vocabulary.digest, "vocab_size": vocabulary.vocab_size},
        "padded_vocab_size": vocabulary.padded,
        "token_dtype": flags.token_dtype,
        "notes": flags.notes,
    }


def describe_notes(vocabulary: Vocabulary, flags: Flags) -> list[str]:
    """Return what is printed beside the flags."""
    sizes = f"{vocabulary.vocab_size:,} ids, {vocabulary.padded:,} rows of the embedding"
    return [f"tokenizer {vocabulary.digest}: {sizes}", *flags.notes]
