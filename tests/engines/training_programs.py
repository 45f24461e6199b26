"""Trainings of small models on exported files, each in the process of `in_torch`; they return plain values."""

from __future__ import annotations

import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cppmill_core import VocabStamp, VocabularyError, assert_vocab, stamp

from schemas.tables import PLATFORM_VOCAB_SIZE

WIDTH, HEADS = 32, 2


def gpt_of(vocab_size: int, block_size: int) -> Any:
    """A decoder of one layer with nanoGPT's names, whose input is tokens and bags of platforms; it returns the loss."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
            tokens, places = nn.Embedding(vocab_size, WIDTH), nn.Embedding(block_size, WIDTH)
            bags = nn.EmbeddingBag(PLATFORM_VOCAB_SIZE, WIDTH, mode="sum", padding_idx=0)
            self.transformer = nn.ModuleDict({"wte": tokens, "wpe": places, "wpl": bags, "h": layer})
            self.lm_head = nn.Linear(WIDTH, vocab_size, bias=False)

        def forward(self, x: Any, y: Any, bags: Any) -> Any:
            places = torch.arange(x.shape[1])
            part = self.transformer
            inputs = part["wte"](x) + part["wpe"](places) + part["wpl"](bags.flatten(0, 1)).view(*x.shape, WIDTH)
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            logits = self.lm_head(part["h"](inputs, src_mask=mask, is_causal=True))
            return functional.cross_entropy(logits.flatten(0, 1), y.flatten())

    torch.manual_seed(1)
    return Gpt()


def train_as_page(code: str, names: dict[str, Any], steps: int) -> dict[str, Any]:
    """Run the page's loop of nanoGPT: the losses, and the tokens and platform ids of each drawn position."""
    import torch

    drawn: list[tuple[list[Any], list[Any], list[Any]]] = []
    losses: list[float] = []
    model = gpt_of(names["vocab_size"], names["block_size"])
    before = model.transformer["wpl"].weight.detach().clone()

    def train(x: Any, y: Any, bags: Any) -> Any:
        drawn.append((x.tolist(), y.tolist(), bags.tolist()))
        loss = model(x, y, bags)
        losses.append(loss.item())
        return loss

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0)
    names |= {"model": model, "train": train, "optimizer": optimizer, "steps": steps}
    exec(compile(code, "page", "exec"), names)
    changed = (model.transformer["wpl"].weight.detach() != before).any(dim=1).nonzero().flatten().tolist()
    return {"losses": losses, "drawn": drawn, "changed": changed}


def embed_sequences(folder: Path, code: str, rows: int) -> list[tuple[list[list[int]], list[list[int]]]]:
    """Run the page's lines on batches of sequences: the segment of each position, and the padded ids of segments.

    The embedding of each position must be that of its token and its segment's platforms.
    """
    import torch
    from cppmill_core.loader import Loader
    from cppmill_core.torch_data import TokenDataset, pad_bags

    tokens = torch.nn.Embedding(1 << 16, WIDTH)
    platforms = torch.nn.EmbeddingBag(PLATFORM_VOCAB_SIZE, WIDTH, mode="sum", padding_idx=0)
    found = []
    for batch in TokenDataset(Loader(folder, batch_rows=rows)):
        names = {"torch": torch, "pad_bags": pad_bags, "batch": batch, "tokens": tokens, "platforms": platforms}
        exec(compile(code, "page", "exec"), names)
        expected = tokens(batch["token_ids"]) + platforms(names["bags"][names["segment"]].flatten(0, 1)).view(
            *batch["token_ids"].shape, WIDTH
        )
        assert torch.allclose(names["embedded"], expected, atol=1e-6)
        found.append((names["segment"].tolist(), names["bags"].tolist()))
    return found


def check_vocab(path: Path, others: Sequence[Path]) -> list[str]:
    """What `assert_vocab` says of a checkpoint of torch, for each run or tokenizer."""
    import torch

    return [_said(torch.load(path, weights_only=False), other) for other in others]


def _said(checkpoint: Any, source: Path) -> str:
    try:
        assert_vocab(checkpoint, source)
    except VocabularyError as error:
        return str(error)
    return ""


def begin_megatron(site: str, folder: Path) -> None:
    """Find megatron-core, and make the group of processes that it asks for: this one."""
    sys.path.append(site)
    # It warns of packages that it lacks here, and of modules of its own.
    warnings.filterwarnings("ignore", module=r"megatron\.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from megatron.core import parallel_state
        from megatron.core.datasets import gpt_dataset  # noqa: F401 - its imports warn too
        from megatron.core.models.gpt import gpt_layer_specs  # noqa: F401 - the same

        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
        parallel_state.initialize_model_parallel()


def read_index(prefix: str) -> tuple[str, list[list[int]], list[int]]:
    """What Megatron's IndexedDataset reads of a pair: the type of the ids, its sequences, and its documents."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    dataset = IndexedDataset(prefix)
    sequences = [dataset[number].tolist() for number in range(len(dataset))]
    return dataset.index.dtype.__name__, sequences, dataset.document_indices.tolist()


def megatron_datasets(
    arguments: dict[str, list[str]], tokenizer: Path, samples: tuple[int, int], length: int, kind: Any = None
) -> Any:
    """The datasets for training and validation that Megatron builds of the printed arguments, its own or of a kind."""
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import get_blend_from_list
    from megatron.core.tokenizers import MegatronTokenizer

    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=length,
        blend_per_split=[*(get_blend_from_list(paths) for paths in arguments.values()), None],
        tokenizer=MegatronTokenizer.from_pretrained(str(tokenizer), metadata_path={"library": "huggingface"}),
        reset_position_ids=True,
        reset_attention_mask=True,
        eod_mask_loss=True,
        path_to_cache=tempfile.mkdtemp(),
    )
    return BlendedMegatronDatasetBuilder(kind or GPTDataset, [*samples, 0], lambda: True, config).build()[:2]


def read_samples(prefix: str, tokenizer: Path, length: int) -> tuple[list[int], list[int], list[dict[str, list[Any]]]]:
    """The order of the documents and of the samples of an epoch of a pair, and the samples."""
    data = {"train": [prefix], "valid": [prefix]}
    dataset, _ = megatron_datasets(data, tokenizer, (1, 1), length)
    samples = [{name: value.tolist() for name, value in sample.items()} for sample in dataset]
    return dataset.document_index.tolist(), dataset.shuffle_index.tolist(), samples


def train_megatron(
    code: str, arguments: dict[str, list[str]], run: Path, checkpoint: Path, steps: int, rows: int, length: int
) -> dict[str, Any]:
    """Train Megatron's GPTModel on the page's dataset, platforms included, and save a stamped checkpoint.

    Returns:
        The losses, the tokens and platform ids of all samples, and how many came from each pair.
    """
    import torch
    from torch.utils.data import default_collate

    names: dict[str, Any] = {}
    exec(compile(code, "page", "exec"), names)
    data, _ = megatron_datasets(arguments, run / "tokenizer", (rows * steps, 1), length, names["PlatformDataset"])
    vocab_size = VocabStamp.of(run).vocab_size
    model = _megatron_model(vocab_size, length)
    bags = torch.nn.EmbeddingBag(PLATFORM_VOCAB_SIZE, WIDTH, mode="sum", padding_idx=0)
    optimizer = torch.optim.AdamW([*model.parameters(), *bags.parameters()], lr=1e-2)
    losses = []
    for step in range(steps):
        batch = default_collate([data[number] for number in range(rows * step, rows * (step + 1))])
        places, ids = batch["position_ids"], batch["platform_ids"]
        platforms = bags(ids.flatten(0, 1)).view(rows, length, WIDTH).transpose(0, 1)
        inputs = model.embedding(input_ids=batch["tokens"], position_ids=places) + platforms
        found = model(batch["tokens"], places, batch["attention_mask"], decoder_input=inputs, labels=batch["labels"])
        loss = (found * batch["loss_mask"]).sum() / batch["loss_mask"].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    saved = {"model": model.state_dict(), "args": Namespace(padded_vocab_size=vocab_size), "iteration": steps}
    stamp(saved, run)
    torch.save(saved, checkpoint)
    samples = [(sample["tokens"].tolist(), sample["platform_ids"].tolist()) for sample in data]
    return {"losses": losses, "samples": samples, "pairs": np.bincount(data.dataset_index).tolist()}


def _megatron_model(vocab_size: int, length: int) -> Any:
    """Megatron's model of one layer; its own attention takes memory from a GPU, so it has torch's instead."""
    import torch
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig

    class Attention(torch.nn.Module):
        def __init__(self, **named: Any) -> None:
            super().__init__()

        def forward(self, query: Any, key: Any, value: Any, attention_mask: Any, **named: Any) -> Any:
            parts = (part.permute(1, 2, 0, 3) for part in (query, key, value))
            found = torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=~attention_mask)
            return found.permute(2, 0, 1, 3).flatten(2)

    spec = get_gpt_layer_local_spec()
    spec.submodules.self_attention.submodules.core_attention = Attention
    config = TransformerConfig(
        num_layers=1,
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        use_cpu_initialization=True,
        attention_dropout=0.0,
        hidden_dropout=0.0,
    )
    torch.manual_seed(1)
    return GPTModel(config=config, transformer_layer_spec=spec, vocab_size=vocab_size, max_sequence_length=length)
