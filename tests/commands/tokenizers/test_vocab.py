"""The commands below `cppmill vocab`, on the tokenizers of real runs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import cppmill_core
import numpy as np
import pyarrow.parquet as pq
import pytest
from cppmill_core.working_set import WorkingSet
from sentencepiece import SentencePieceTrainer


@pytest.fixture(scope="module")
def other(run, cppmill, tmp_path_factory):
    """A tokenizer of the same counts with more ids."""
    out = shutil.copytree(run.out, tmp_path_factory.mktemp("other") / "out")
    cppmill("build", "--out", out, "--vocab-size", 13_000, "--unit-bytes", 1 << 20, "--rebuild-tokenizer")
    return out / "tokenizer"


def test_a_diff_shows_the_tokens_and_the_compression_of_each_project(run, other, cppmill):
    done = cppmill("vocab", "diff", run.out / "tokenizer", other, "--documents", run.out)
    table = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.endswith("%")}
    assert sorted(table) == ["all", "arrow", "numpy"]
    dataset = run.receipt["dataset"]
    num_bytes, old, new, change = table["all"]
    assert int(num_bytes.replace(",", "")) == dataset["bytes"]
    controls = 2 * dataset["documents"]
    assert old == f"{dataset['bytes'] / (dataset['tokens'] - controls):.3f}"
    assert float(new) > float(old)
    assert change.startswith("+")
    assert re.search(r"^moved +0 +\d", done.stdout, re.M)
    assert cppmill("vocab", "diff", run.out / "tokenizer", other, "--documents", run.out / "documents").stdout == (
        done.stdout
    )


def test_a_moved_fixed_id_is_named_and_fails_the_diff(run, cppmill, tmp_path):
    forged = shutil.copytree(run.out / "tokenizer", tmp_path / "forged")
    model = json.loads((forged / "tokenizer.json").read_bytes())
    vocab = model["model"]["vocab"]
    vocab["std"], vocab["string"] = vocab["string"], vocab["std"]
    (forged / "tokenizer.json").write_text(json.dumps(model))
    manifest = json.loads((forged / "manifest.json").read_bytes())
    manifest["files"]["tokenizer.json"] = hashlib.sha256((forged / "tokenizer.json").read_bytes()).hexdigest()
    for token in manifest["tokens"]:
        token["token"] = {"std": "string", "string": "std"}.get(token["token"], token["token"])
    (forged / "manifest.json").write_text(json.dumps(manifest))
    done = cppmill("vocab", "diff", run.out / "tokenizer", forged, check=False)
    assert done.returncode == 1
    told = done.stdout + done.stderr
    assert "std" in told
    assert "string" in told
    assert re.search(r"1500\b.*1501|1501\b.*1500", told, re.S)


def test_the_documented_surgery_gives_each_new_token_its_row(run, other, cppmill, repository, tmp_path, monkeypatch):
    old, new = (cppmill_core.Tokenizer.from_dir(path) for path in (run.out / "tokenizer", other))
    maps = [tmp_path / name for name in ("ids.parquet", "ids.npy")]
    cppmill("vocab", "diff", run.out / "tokenizer", other, "--id-map", maps[0], "--id-map", maps[1])
    embeddings = np.random.default_rng(7).normal(size=(old.vocab_size, 8)).astype(np.float32)
    np.save(tmp_path / "old_embeddings.npy", embeddings)
    monkeypatch.chdir(tmp_path)
    exec(documented(repository, "new_embeddings.npy"), {})
    made = np.load(tmp_path / "new_embeddings.npy")
    assert made.shape == (new.vocab_size, 8)
    kinds = {"moved": 0, "new": 0}
    for row in pq.read_table(maps[0]).to_pylist():
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
        if row["old_id"] is not None and row["kind"] != "reserved":
            assert np.array_equal(made[row["new_id"]], embeddings[row["old_id"]])
        elif row["kind"] == "new":
            spelled = old.encode(new.token_bytes(row["new_id"])).to_pylist()
            assert np.allclose(made[row["new_id"]], embeddings[spelled].mean(axis=0))
    assert min(kinds.values()) > 0
    moved = np.load(maps[1])
    assert np.array_equal(made[moved[5300]], embeddings[5300])


def documented(repository, mention):
    """The one Python block of docs/how-to/models/changing-the-tokenizer.md that mentions something."""
    text = (repository / "docs" / "how-to" / "models" / "changing-the-tokenizer.md").read_text()
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if mention in block]
    assert len(blocks) == 1
    return blocks[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{old}", "{old}", "--id-map", "ids.csv"], "--id-map ids.csv: ends in neither .parquet nor .npy"),
        (["{old}", "{old}", "--id-map", "nowhere/ids.npy"], "there is no folder nowhere"),
        (["{old}", "{out}"], "no tokenizer; it takes a directory with a manifest.json"),
        (["{old}", "{old}", "--documents", "{old}"], "no documents shards; give a run's folder"),
    ],
)
def test_what_cannot_be_compared_is_refused(run, cppmill, arguments, said):
    named = [text.format(old=run.out / "tokenizer", out=run.out) for text in arguments]
    done = cppmill("vocab", "diff", *named, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_working_set_covers_its_projects_and_makes_the_mask(run, cppmill, tmp_path):
    file = tmp_path / "arrow.json"
    done = cppmill("vocab", "working-set", run.out, "--projects", "arr*", "--coverage", "0.95", "--out", file)
    tokenizer = cppmill_core.Tokenizer.from_dir(run.out / "tokenizer")
    found = WorkingSet.load(file, tokenizer=tokenizer)
    tokens = [
        row["token_ids"]
        for shard in run.receipt["dataset"]["shards"]
        for row in pq.read_table(run.out / shard["path"]).to_pylist()
        if row["project"] == "arrow"
    ]
    text = [token for ids in tokens for token in ids[1:-1]]
    allowed = np.isfinite(found.mask())
    assert np.flatnonzero(allowed).tolist() == list(found.ids)
    assert allowed[text].mean() == pytest.approx(found.coverage)
    assert 0.95 <= found.coverage < 0.951
    receipt = json.loads(file.read_bytes())
    assert receipt["projects"] == {"globs": ["arr*"], "names": ["arrow"], "documents": len(tokens)}
    assert receipt["dataset"] == run.receipt["dataset"]["digest"]
    assert f"1 projects, {len(tokens):,} documents, {len(text):,} tokens: {len(found.ids):,} of 12,288" in done.stdout
    again = tmp_path / "again.json"
    cppmill("vocab", "working-set", run.out, "--projects", "arr*", "--coverage", "0.95", "--out", again)
    assert again.read_bytes() == file.read_bytes()


def test_a_working_set_of_another_tokenizer_is_refused(run, other, cppmill, tmp_path):
    cppmill("vocab", "working-set", run.out, "--out", tmp_path / "all.json")
    tokenizer = cppmill_core.Tokenizer.from_dir(other)
    with pytest.raises(cppmill_core.InvalidInputError, match=f"not of {tokenizer.digest}; write one for it"):
        WorkingSet.load(tmp_path / "all.json", tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{out}", "--projects", "boost"], "--projects boost: no project of"),
        (["{out}", "--coverage", "0"], "--coverage 0.0: not allowed"),
        (["{tokenizer}"], "no receipt.json; give the folder of a finished run"),
    ],
)
def test_a_working_set_that_cannot_be_is_refused(run, cppmill, tmp_path, arguments, said):
    named = [text.format(out=run.out, tokenizer=run.out / "tokenizer") for text in arguments]
    done = cppmill("vocab", "working-set", *named, "--out", tmp_path / "set.json", check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "set.json").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("platform_vocab.json", ["--platforms", "*=*"]),
        ("tokenizer/decisions.parquet", ["--bands", "*"]),
        ("tokenizer/manifest.json", []),
    ],
)
def test_a_working_set_reads_no_file_that_the_receipt_does_not_name(copied_run, cppmill, tmp_path, name, arguments):
    """Other labels, categories or ids would choose other tokens under the names that were asked for."""
    path = copied_run.out / name
    if path.suffix == ".json":
        path.write_bytes(path.read_bytes().replace(b"cuda", b"cudb") + b" ")
    else:
        rows = pq.read_table(path)
        pq.write_table(rows.slice(1), path)
    command = ["vocab", "working-set", copied_run.out, *arguments, "--out", tmp_path / "set.json"]
    done = cppmill(*command, check=False)
    assert (done.returncode, (tmp_path / "set.json").exists()) == (1, False)
    assert "the receipt" in done.stderr


def test_a_working_set_needs_a_folder_outside_its_run(run, cppmill, tmp_path):
    for file, said in [
        (tmp_path / "no" / "set.json", "there is no folder"),
        (run.out / "set.json", "in the run's own"),
    ]:
        done = cppmill("vocab", "working-set", run.out, "--out", file, check=False)
        assert done.returncode == 2
        assert said in done.stderr
        assert not file.exists()


def test_a_release_refuses_damaged_files_and_ids_of_another_vocabulary(run, cppmill, repository, tmp_path):
    vocabulary = shutil.copytree(repository / "configs" / "vocab", tmp_path / "vocab")
    releases = (vocabulary / "releases.lock").read_bytes()
    damaged = shutil.copytree(run.out / "tokenizer", tmp_path / "damaged")
    (damaged / "tokenizer.json").write_bytes((damaged / "tokenizer.json").read_bytes()[:-100])
    done = cppmill("vocab", "release", "9.0", "--tokenizer", damaged, "--vocab", vocabulary, check=False)
    assert done.returncode != 0
    keywords = vocabulary / "language" / "keywords.toml"
    ((key, token),) = re.findall(r'^(\d+) = "(constexpr)"$', keywords.read_text(), re.M)
    keywords.write_text(keywords.read_text().replace(f'{key} = "{token}"', f'{key} = "constexprs"'))
    done = cppmill("vocab", "release", "9.0", "--tokenizer", run.out / "tokenizer", "--vocab", vocabulary, check=False)
    assert done.returncode == 2
    assert "'constexpr' has id" in done.stderr
    assert (vocabulary / "releases.lock").read_bytes() == releases


def test_ids_are_mapped_between_ours_and_another_programs_and_rows_are_means(run, cppmill, tmp_path):
    words = ["int size = width * height;", "return std::vector<int>(size);"] * 9
    SentencePieceTrainer.train(
        sentence_iterator=iter(words), model_prefix=str(tmp_path / "m"), vocab_size=320, model_type="bpe",
        byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    model, ours = tmp_path / "m.model", run.out / "tokenizer"
    tokenizers = {"theirs": cppmill_core.open_any(model), "ours": cppmill_core.load_tokenizer(ours)}
    for old, new, first, second in (("theirs", "ours", model, ours), ("ours", "theirs", ours, model)):
        rows = np.random.default_rng(1).normal(size=(tokenizers[old].vocab_size, 3)).astype(np.float32)
        np.save(tmp_path / "rows.npy", rows)
        written = (
            "--out",
            tmp_path / "ids.parquet",
            "--embeddings",
            tmp_path / "rows.npy",
            "--init",
            tmp_path / "new.npy",
        )
        said = cppmill("vocab", "map", first, second, *written).stdout
        assert f"{tokenizers[new].vocab_size:,} ids" in said
        table, made = pq.read_table(tmp_path / "ids.parquet").to_pylist(), np.load(tmp_path / "new.npy")
        assert (made.shape, made.dtype) == ((tokenizers[new].vocab_size, 3), rows.dtype)
        for row in table:
            token, ids = tokenizers[new].token_bytes(row["new_id"]), row["old_ids"]
            expected = rows[ids] if ids else rows
            np.testing.assert_allclose(made[row["new_id"]], expected.mean(axis=0), atol=1e-5)
            if token:
                assert b"".join(tokenizers[old].token_bytes(number) for number in ids) == token
        for name in ("<BOS>", "<EOS>"):
            assert table[tokenizers[new].control_id(name)]["old_ids"] == [tokenizers[old].control_id(name)]
        assert any(len(row["old_ids"]) > 1 for row in table)
    np.save(tmp_path / "rows.npy", rows[:5])
    refused = cppmill("vocab", "map", ours, model, *written, check=False)
    assert (refused.returncode, "its shape is (5, 3)" in refused.stderr) == (2, True)
