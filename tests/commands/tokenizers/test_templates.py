"""Templates: what `AutoTokenizer` puts around a text, with all ids as they were, in every command."""

import json
import shutil

import cppmill_core
import pyarrow.parquet as pq
import pytest
import tokenizers
import transformers

BOS, EOS = 2, 3
ENDS = {"none": ([], []), "bos": ([BOS], []), "bos-eos": ([BOS], [EOS])}
TEMPLATES = ["bos", "bos-eos"]


@pytest.fixture(scope="module")
def templated(run, cppmill, tmp_path_factory):
    """Copies of the run's tokenizer, by the name of their template."""
    folder = tmp_path_factory.mktemp("templated")
    for name in TEMPLATES:
        cppmill("adopt", run.out / "tokenizer", "--out", folder / name, "--hf-template", name)
    return {"none": run.out / "tokenizer", **{name: folder / name for name in TEMPLATES}}


@pytest.fixture(scope="module")
def texts(run):
    """The texts of the run that are UTF-8, with the ids of their rows."""

    def column(folder, name):
        tables = (pq.read_table(path, columns=["doc_id", name]) for path in folder.glob("part-*"))
        return {row["doc_id"]: row[name] for table in tables for row in table.to_pylist()}

    contents, ids = column(run.out / "documents", "content"), column(run.out / "tokens", "token_ids")
    found = {content.decode(errors="replace"): ids[doc_id] for doc_id, content in contents.items()}
    assert len(found) > 40
    return {text: row for text, row in found.items() if "\ufffd" not in text}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("_unit-")}


@pytest.mark.parametrize("template", ENDS)
def test_auto_tokenizer_puts_the_template_around_the_ids_of_each_text(template, templated, texts):
    before, after = ENDS[template]
    auto = transformers.AutoTokenizer.from_pretrained(templated[template])
    assert auto(list(texts))["input_ids"] == [[*before, *row[1:-1], *after] for row in texts.values()]
    one, two = (row[1:-1] for row in list(texts.values())[:2])
    pair = auto(*list(texts)[:2])
    assert pair["input_ids"] == [*before, *one, *after, *before, *two, *after]


def test_the_template_of_the_policy_gives_the_rows_of_the_dataset(templated, texts):
    auto = transformers.AutoTokenizer.from_pretrained(templated["bos-eos"])
    assert auto(list(texts))["input_ids"] == list(texts.values())


@pytest.mark.parametrize("template", ENDS)
def test_a_template_changes_no_id_of_the_native_core(template, templated, texts):
    tokenizer = cppmill_core.Tokenizer.from_dir(templated[template])
    plain = tokenizers.Tokenizer.from_file(str(templated[template] / "tokenizer.json"))
    plain.encode_special_tokens = True
    for text, row in texts.items():
        assert tokenizer.encode(text).to_pylist() == row[1:-1]
    assert [one.ids for one in plain.encode_batch(list(texts), add_special_tokens=False)] == [
        row[1:-1] for row in texts.values()
    ]


@pytest.mark.parametrize("template", ENDS)
def test_extra_special_tokens_are_the_control_tokens_without_a_role(template, templated):
    auto = transformers.AutoTokenizer.from_pretrained(templated[template])
    control = [token["token"] for token in json.loads((templated[template] / "manifest.json").read_bytes())["tokens"]]
    roles = ["<PAD>", "<UNK>", "<BOS>", "<EOS>"]
    extra = [] if template == "none" else [name for name in control[:48] if name not in roles]
    assert auto.extra_special_tokens == extra
    assert len(auto) == cppmill_core.Tokenizer.from_dir(templated[template]).vocab_size
    if extra:
        assert {"<FIM_PREFIX>", "<FIM_MIDDLE>", "<FIM_SUFFIX>"} < set(auto.all_special_tokens)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_build_writes_the_bytes_of_the_copy_and_records_the_template(template, run, templated, cppmill, tmp_path):
    out = shutil.copytree(run.out, tmp_path / "out")
    options = ["--vocab-size", 12_288, "--unit-bytes", 1 << 17, "--hf-template", template, "--rebuild-tokenizer"]
    cppmill("build", "--out", out, *options)
    assert contents(out / "tokenizer") == contents(templated[template])
    assert json.loads((out / "tokenizer" / "manifest.json").read_bytes())["hf_template"] == template


def test_the_way_back_gives_the_bytes_of_the_original(run, templated, cppmill, tmp_path):
    cppmill("adopt", templated["bos-eos"], "--out", tmp_path / "back", "--hf-template", "none")
    assert contents(tmp_path / "back") == contents(run.out / "tokenizer")


def test_a_run_with_a_templated_tokenizer_has_the_ids_of_a_run_without(run, templated, cppmill, tmp_path):
    out = tmp_path / "out"
    done = cppmill(*run.command[:2], "--out", out, "--tokenizer", templated["bos"], "--unit-bytes", 1 << 17)
    assert "around a text" not in done.stderr
    cppmill("verify", out)
    receipt = json.loads((out / "receipt.json").read_bytes())
    assert receipt["dataset"]["digest"] == run.receipt["dataset"]["digest"]
    assert receipt["tokenizer"]["digest"] != run.receipt["tokenizer"]["digest"]


def test_a_dataset_of_another_template_is_a_new_version_with_every_id_kept(run, templated, cppmill, tmp_path):
    store = tmp_path / "store"
    for template in ("none", "bos-eos"):
        cppmill("retokenize", run.sources / "numpy", "--store", store, "--tokenizer", templated[template])
    changes = json.loads((store / "changes" / "v000002.json").read_bytes())
    reserved = 216
    assert changes["ids"]["kept"] == 12_288 - reserved
    assert changes["ids"]["moved"] == changes["ids"]["added"] == changes["ids"]["removed"] == 0
    cppmill("verify", store / "current")


def test_the_commands_that_compare_find_no_difference(run, templated, cppmill):
    done = cppmill("vocab", "diff", run.out / "tokenizer", templated["bos-eos"])
    assert [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("moved")] == [["0", "0"]]
    sides = [f"{name}={folder}" for name, folder in templated.items()]
    lines = cppmill("compare", *sides, "--on", run.sources, "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines if json.loads(line)["record"] == "tokenizer"]
    assert len({(one["tokens"], one["library"]) for one in found}) == 1 < len(found)


def test_what_lies_beside_a_tokenizer_is_not_copied(templated, cppmill, tmp_path):
    source = shutil.copytree(templated["bos"], tmp_path / "source")
    (source / "tokenization_own.py").touch()
    said = cppmill("adopt", source, "--out", tmp_path / "out", "--hf-template", "none").stdout
    assert "not copied, as it is no part of the tokenizer: tokenization_own.py\n" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in templated["bos"].iterdir()}


def test_an_adopted_tokenizer_json_with_a_template_is_run_by_the_core(templated, cppmill, tmp_path):
    said = cppmill("adopt", templated["bos"] / "tokenizer.json", "--out", tmp_path / "adopted").stdout
    assert said.startswith("hugging-face: 12,288 ids, run by the native core")
    other = ["--out", tmp_path / "other", "--hf-template", "none"]
    refused = cppmill("adopt", tmp_path / "adopted", *other, check=False)
    assert refused.returncode == 2
    assert "not a tokenizer directory that a build wrote" in refused.stderr


def test_a_damaged_tokenizer_gets_no_template(run, cppmill, tmp_path):
    damaged = shutil.copytree(run.out / "tokenizer", tmp_path / "damaged")
    for content, said in (("{", "not the manifest of a tokenizer"), ("[]", "not the manifest")):
        (damaged / "manifest.json").write_text(content)
        done = cppmill("adopt", damaged, "--out", tmp_path / "out", "--hf-template", "bos", check=False)
        assert (done.returncode, said in done.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


def test_a_template_that_contradicts_the_policy_is_reported(run, templated, cppmill, tmp_path):
    (tmp_path / "run.toml").write_text("[tokenize]\neos = false\n")
    arguments = ["run", run.sources / "numpy", "--out", tmp_path / "out", "--config", tmp_path / "run.toml"]
    refused = cppmill(*arguments, "--hf-template", "bos-eos", check=False)
    assert refused.returncode == 2
    assert "--hf-template bos-eos: documents have no <EOS>, because eos = false in [tokenize]" in refused.stderr
    said = cppmill(*arguments, "--tokenizer", templated["bos-eos"], "--hf-template", "bos").stderr
    assert "put <EOS> around a text, and this run's documents have none" in said
    assert "hf_template = bos is for a build; `cppmill adopt DIR --hf-template bos`" in said


@pytest.mark.parametrize(
    ("source", "arguments", "said"),
    [
        ("tokenizer", [], "a tokenizer directory already, with a manifest.json; use it as it is, or name a template"),
        ("tokenizer/tokenizer.json", ["--hf-template", "bos"], "not a tokenizer directory that a build wrote"),
        ("tokenizer", ["--hf-template", "bos", "--eos", "<PAD>"], "leave out --bos and --eos"),
        ("tokenizer", ["--hf-template", "eos"], "'none', 'bos', 'bos-eos'"),
    ],
)
def test_what_has_no_template_to_change_is_refused(source, arguments, said, run, cppmill, tmp_path):
    done = cppmill("adopt", run.out / source, "--out", tmp_path / "out", *arguments, check=False)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
