"""`cppmill vocab working-set`, `mask` and `prove-mask`: documents by platform and namespace, bands, and the proof."""

import json

import cppmill_core
import numpy as np
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from cppmill_core import stamp
from cppmill_core.masks import Mask
from cppmill_core.working_set import WorkingSet


@pytest.fixture(scope="module")
def rows(run):
    """Text, ids and platforms of each document."""
    shards = [pq.read_table(path).to_pylist() for path in sorted((run.out / "documents").glob("part-*"))]
    texts = {row["doc_id"]: row["content"] for shard in shards for row in shard}
    tokens = [pq.read_table(run.out / shard["path"]).to_pylist() for shard in run.receipt["dataset"]["shards"]]
    return [{**row, "content": texts[row["doc_id"]]} for shard in tokens for row in shard]


def vocab(cppmill, *arguments, check=True):
    return cppmill("vocab", *arguments, check=check)


def make_set(cppmill, run, file, *arguments):
    vocab(cppmill, "working-set", run.out, "--out", file, "--coverage", "1", *arguments)
    return WorkingSet.load(file), json.loads(file.read_bytes())


def used(rows):
    return {number for row in rows for number in row["token_ids"][1:-1]}


def test_documents_are_chosen_by_platform(run, rows, cppmill, tmp_path):
    found, receipt = make_set(cppmill, run, tmp_path / "set.json", "--platforms", "os=*")
    labels = json.loads((run.out / "platform_vocab.json").read_bytes())["categories"]["os"]
    chosen = [row for row in rows if set(row["platform_ids"]) & set(labels.values())]
    assert 0 < len(chosen) < len(rows)
    assert receipt["projects"]["documents"] == len(chosen)
    assert receipt["platforms"] == {"globs": ["os=*"], "labels": sorted(f"os={label}" for label in labels)}
    assert used(chosen) <= set(found.ids)
    assert receipt["coverage"]["tokens"] == sum(len(row["token_ids"]) - 2 for row in chosen)


def test_documents_are_chosen_by_namespace_in_code(run, rows, cppmill, tmp_path):
    found, receipt = make_set(cppmill, run, tmp_path / "set.json", "--namespaces", "std", "--projects", "arr*")
    arrow = [row for row in rows if row["project"] == "arrow"]
    chosen = []
    for row in arrow:
        lexed = cppmill_core.lex(row["content"]).to_pylist()
        code = [row["content"][token["start"] : token["end"]] for token in lexed if token["kind"] not in SILENT]
        chosen += [row] if any(pair == (b"std", b"::") for pair in zip(code, code[1:], strict=False)) else []
    assert 0 < len(chosen) < len(arrow)
    assert receipt["projects"]["documents"] == len(chosen)
    assert receipt["namespaces"] == {"globs": ["std"]}
    assert used(chosen) <= set(found.ids)


SILENT = {"whitespace", "newline", "line_comment", "block_comment"}


def test_bands_are_in_a_set_as_a_whole_and_options_off_change_nothing(run, cppmill, tmp_path):
    plain = tmp_path / "plain.json"
    vocab(cppmill, "working-set", run.out, "--out", plain, "--coverage", "0.5")
    vocab(cppmill, "working-set", run.out, "--out", tmp_path / "set.json", "--coverage", "0.5", "--bands", "operators")
    few, more = (json.loads(path.read_bytes()) for path in (plain, tmp_path / "set.json"))
    manifest = json.loads((run.out / "tokenizer" / "manifest.json").read_bytes())
    operators = {token["id"] for token in manifest["tokens"] if token["band"] == "operators"}
    assert operators <= set(more["ids"])
    assert not operators <= set(few["ids"])
    assert (few["always"], more["always"]) == (["control", "bytes"], ["control", "bytes", "operators"])
    assert {"platforms", "namespaces"}.isdisjoint(few)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--platforms", "os=plan9"], "--platforms os=plan9: no such platform"),
        (["--namespaces", "nowhere"], "no document meets"),
        (["--bands", "other*"], "--bands other*: no band or category has such a name; there are "),
        (["--bands", "cuda_*"], "the vocabulary has cuda_atomics, "),
    ],
)
def test_what_matches_nothing_is_refused(run, cppmill, tmp_path, arguments, said):
    done = vocab(cppmill, "working-set", run.out, "--out", tmp_path / "set.json", *arguments, check=False)
    assert (done.returncode, (tmp_path / "set.json").exists()) == (2, False)
    assert said in done.stderr


def test_a_mask_has_biases_of_bands_working_sets_and_frozen_categories(run, cppmill, tmp_path):
    tokenizer, file = run.out / "tokenizer", tmp_path / "mask.json"
    allowed, _ = make_set(cppmill, run, tmp_path / "set.json", "--projects", "arrow")
    decisions = pq.read_table(tokenizer / "decisions.parquet").to_pylist()
    category = next(row["category"] for row in decisions if row["decision"] == "kept" and ":" not in row["category"])
    kept = {row["id"] for row in decisions if row["category"] == category and row["decision"] == "kept"}
    bias = ["--bias", "operators=-1.5", "--bias", "learned=0.25", "--bias", "o*rs=-1"]
    options = [*bias, "--allow", tmp_path / "set.json", "--outside", "-4", "--freeze", category, "--freeze", "control"]
    done = vocab(cppmill, "mask", "--tokenizer", tokenizer, *options, "--out", file)
    mask = Mask.load(file, tokenizer=cppmill_core.Tokenizer.from_dir(tokenizer))
    manifest = json.loads((tokenizer / "manifest.json").read_bytes())
    fixed = {token["id"]: token["band"] for token in manifest["tokens"]}
    reserved = {number for first, last in manifest["reserved"] for number in range(first, last + 1)}
    for number, value in enumerate(mask.biases.tolist()):
        band = fixed.get(number, "reserved" if number in reserved else "learned")
        expected = {"operators": -2.5, "learned": 0.25}.get(band, 0) + (0 if number in allowed.ids else -4)
        assert value == expected
    assert set(mask.frozen) == kept | {number for number, band in fixed.items() if band == "control"}
    assert (
        f"0 forbidden, {np.count_nonzero(mask.biases):,} with another bias, {len(mask.frozen):,} frozen" in done.stdout
    )
    vocab(cppmill, "mask", "--tokenizer", tokenizer, "--allow", tmp_path / "set.json", "--out", file)
    hard = Mask.load(file)
    assert np.array_equal(hard.biases, allowed.mask())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of them"),
        (["--bias", "operators"], "it takes BAND=NUMBER"),
        (["--bias", "operators=inf"], "it takes BAND=NUMBER"),
        (["--freeze", "no_band"], "--freeze no_band: no band or category"),
        (["--freeze", "control", "--outside", "-1"], "needs --allow"),
        (["--bias", "*=-inf"], "nothing to sample"),
    ],
)
def test_a_mask_that_cannot_be_is_refused(run, cppmill, tmp_path, arguments, said):
    command = ["mask", "--tokenizer", run.out / "tokenizer", "--out", tmp_path / "mask.json", *arguments]
    done = vocab(cppmill, *command, check=False)
    assert (done.returncode, (tmp_path / "mask.json").exists()) == (2, False)
    assert said in done.stderr


def test_bands_of_which_the_build_kept_nothing_are_told_from_unknown_ones(run, cppmill, tmp_path):
    decisions = pq.read_table(run.out / "tokenizer" / "decisions.parquet").to_pylist()
    cut = {row["category"] for row in decisions} - {row["category"] for row in decisions if row["decision"] == "kept"}
    cuda = sorted(category for category in cut if category.startswith("cuda_"))
    assert len(cuda) > 5
    command = ["mask", "--tokenizer", run.out / "tokenizer", "--out", tmp_path / "mask.json", "--freeze"]
    done = vocab(cppmill, *command, "cuda_*", check=False)
    said = f"--freeze cuda_*: the vocabulary has {', '.join(cuda)}, but the build of this tokenizer kept none"
    assert (done.returncode, said in done.stderr, "vocab add --keep" in done.stderr) == (2, True, True)
    unknown = vocab(cppmill, *command, "none*", check=False).stderr.partition("there are ")[2].strip().split(", ")
    assert "learned" in unknown
    assert cut.isdisjoint(unknown)


@pytest.mark.parametrize(("name", "reason"), [("missing", "No such file or directory"), ("", "Is a directory")])
def test_a_file_that_cannot_be_read_is_one_line(run, cppmill, tmp_path, name, reason):
    tokenizer, path = ["--tokenizer", run.out / "tokenizer"], tmp_path / name
    done = vocab(cppmill, "mask", *tokenizer, "--allow", path, "--out", tmp_path / "mask.json", check=False)
    assert (done.returncode, done.stderr) == (2, f"error: --allow {path}: {reason}; name the file of a working set\n")
    if path.exists():
        done = vocab(cppmill, "prove-mask", tmp_path, *tokenizer, "--mask", path, check=False)
        assert (done.returncode, done.stderr) == (2, f"error: --mask {path}: {reason}; name the file of a mask\n")


def test_a_checkpoint_is_proved_and_another_is_not(run, cppmill, tmp_path):
    tokenizer, mask_file, receipt = run.out / "tokenizer", tmp_path / "mask.json", tmp_path / "receipt.json"
    vocab(cppmill, "mask", "--tokenizer", tokenizer, "--freeze", "control", "--bias", "l*=-1", "--out", mask_file)
    mask = Mask.load(mask_file)
    rows = np.arange(mask.vocab_size * 2, dtype=np.float32).reshape(-1, 2)
    trained = rows + 1
    trained[list(mask.frozen)] = rows[list(mask.frozen)]
    paths = [tmp_path / f"{name}.safetensors" for name in ("base", "tuned", "thawed")]
    for path, table in zip(paths, (rows, trained, rows + 1), strict=True):
        tensors = {"embed_tokens.weight": table, "lm_head.logit_mask.bias": mask.bias()}
        safetensors.numpy.save_file(tensors, path)
        stamp(path, tokenizer)
    base, tuned, thawed = paths
    command = ["--mask", mask_file, "--tokenizer", tokenizer]
    done = vocab(cppmill, "prove-mask", tuned, *command, "--base", base, "--out", receipt)
    assert "the bias is in lm_head.logit_mask.bias; 48 rows are as before in embed_tokens.weight" in done.stdout
    assert "are those of the receipt" in vocab(cppmill, "prove-mask", tuned, *command, "--check", receipt).stdout
    for arguments, code, said in [
        ([thawed, *command, "--base", base, "--out", tmp_path / "other.json"], 1, "differ from those"),
        ([thawed, *command, "--check", receipt], 1, "checkpoint is"),
        ([tuned, *command, "--out", tmp_path / "other.json"], 2, "name the checkpoint that the training began with"),
        ([tuned, *command], 2, "give one of them"),
    ]:
        done = vocab(cppmill, "prove-mask", *arguments, check=False)
        assert (done.returncode, said in done.stderr) == (code, True)
    assert not (tmp_path / "other.json").exists()
