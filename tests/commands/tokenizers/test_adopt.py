"""`cppmill adopt`: tokenizers of other programs as tokenizer directories, and whole runs with them."""

import json
import resource
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cppmill_core import CorruptDataError, load_tokenizer
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from pipelines.tokenizers.adopt import adopt_tokenizer
from schemas.errors import ResourceError


def texts(sources):
    files = sorted((sources / "numpy").rglob("*.h"))
    return [file.read_text(errors="replace") for file in files]


def train(sources, prefix, **options):
    """Train a `.model` on numpy's headers as other programs do, and return it."""
    lines = (line for text in texts(sources) for line in text.splitlines())
    fixed = {"model_prefix": str(prefix), "model_type": "bpe", "byte_fallback": True, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=lines, **fixed, **options)
    return prefix.with_suffix(".model")


@pytest.fixture(scope="module")
def model(sources, tmp_path_factory):
    """A `.model` as other programs train it, with their names of control tokens."""
    return train(
        sources,
        tmp_path_factory.mktemp("model") / "other",
        vocab_size=2000,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        control_symbols=["<pad>"],
    )


@pytest.fixture(scope="module")
def hugging_face(sources, tmp_path_factory):
    """A folder with the `tokenizer.json` of a byte-level BPE, which names no BOS."""
    folder = tmp_path_factory.mktemp("hugging-face")
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1000, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts(sources), trainer)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"eos_token": {"content": "<|end|>"}}')
    return folder


def adopt_and_run(cppmill, sources, folder, *arguments):
    """Adopt, run on numpy's headers on one thread and on two, verify; return what adopt said and the receipts."""
    said = cppmill("adopt", *arguments, "--out", folder / "tokenizer").stdout
    receipts = []
    for threads in (1, 2):
        out = folder / f"out-{threads}"
        cppmill("run", sources / "numpy", "--out", out, "--tokenizer", folder / "tokenizer", "--threads", threads)
        receipts.append(json.loads((out / "receipt.json").read_bytes()))
    cppmill("verify", out)
    return said, receipts


def test_a_sentencepiece_model_makes_a_dataset(model, cppmill, sources, tmp_path):
    said, receipts = adopt_and_run(cppmill, sources, tmp_path, model)
    assert said.splitlines()[:3] == [
        "sentencepiece: 2,000 ids, run by sentencepiece",
        "<BOS> is id 1",
        "<EOS> is id 2",
    ]
    assert receipts[0]["tokenizer"] == receipts[1]["tokenizer"]
    assert receipts[0]["tokenizer"]["digest"] in said
    assert receipts[0]["dataset"]["digest"] == receipts[1]["dataset"]["digest"]


def test_a_hugging_face_folder_makes_a_dataset(hugging_face, cppmill, sources, tmp_path):
    said, receipts = adopt_and_run(cppmill, sources, tmp_path, hugging_face, "--bos", "<|end|>")
    assert said.splitlines()[0] == "hugging-face: 1,000 ids, run by the native core"
    assert receipts[0]["dataset"]["digest"] == receipts[1]["dataset"]["digest"]


def test_texts_are_whole_whatever_the_file_tells_tokenizers(hugging_face, cppmill, tmp_path):
    made = Tokenizer.from_file(str(hugging_face / "tokenizer.json"))
    made.enable_truncation(4)
    made.enable_padding(length=9)
    made.save(str(tmp_path / "tokenizer.json"))
    said = cppmill("adopt", tmp_path / "tokenizer.json", "--out", tmp_path / "tokenizer").stdout
    assert "texts are neither truncated nor padded, as its file tells tokenizers to" in said
    assert "truncated" not in cppmill("adopt", hugging_face, "--out", tmp_path / "other").stdout
    copied, text = (
        Tokenizer.from_file(str(tmp_path / "tokenizer" / "tokenizer.json")),
        "template <typename T> struct A {};",
    )
    found = load_tokenizer(tmp_path / "tokenizer").encode(text.encode()).tolist()
    assert found != copied.encode(text).ids
    copied.no_truncation()
    copied.no_padding()
    assert found == copied.encode(text).ids


@pytest.mark.parametrize("kind", ["model", "hugging_face"])
def test_a_text_is_shown_with_its_tokens(kind, request, cppmill, tmp_path):
    file = tmp_path / "a.cpp"
    file.write_text("int main() {}")
    cppmill("adopt", request.getfixturevalue(kind), "--out", tmp_path / "tokenizer")
    shown = cppmill("show", "--tokenizer", tmp_path / "tokenizer", file).stdout
    assert shown.partition("\n")[0].replace("│", "") == "int main() {}"
    assert "learned" in shown


def test_a_tokenizer_without_bos_is_refused_with_what_to_do(hugging_face, cppmill, sources, tmp_path):
    said = cppmill("adopt", hugging_face, "--out", tmp_path / "tokenizer").stdout
    assert "<BOS> is missing: adopt it again with --bos NAME, or set bos = false in [tokenize]" in said
    run = ["run", sources / "numpy", "--out", tmp_path / "out", "--tokenizer", tmp_path / "tokenizer"]
    refused = cppmill(*run, check=False)
    assert refused.returncode == 2
    assert "it has no <BOS>" in refused.stderr and "bos = false" in refused.stderr
    assert not (tmp_path / "out" / "documents").exists()
    (tmp_path / "run.toml").write_text("[tokenize]\nbos = false\n")
    cppmill(*run, "--config", tmp_path / "run.toml")
    cppmill("verify", tmp_path / "out")


@pytest.fixture(scope="module")
def lossy(sources, tmp_path_factory):
    """A `.model` as the trainer makes it by default, with byte fallback: nmt_nfkc, a space in front, few spaces."""
    return train(sources, tmp_path_factory.mktemp("lossy") / "fine", vocab_size=1024)


def test_a_run_takes_what_can_be_adopted(model, cppmill, sources, tmp_path):
    """The `.model` itself: the same dataset as by its directory, up to date for `plan`."""
    _, receipts = adopt_and_run(cppmill, sources, tmp_path, model)
    run = [sources / "numpy", "--out", tmp_path / "out", "--tokenizer", model]
    cppmill("run", *run)
    assert cppmill("plan", *run).stdout.endswith("nothing to do: every unit is up to date\n")
    found = json.loads((tmp_path / "out/receipt.json").read_bytes())
    assert {part: found[part] == receipts[0][part] for part in ("tokenizer", "dataset")} == {
        "tokenizer": True,
        "dataset": True,
    }


def test_a_lossy_model_makes_a_dataset_that_says_what_is_lost(lossy, cppmill, tmp_path):
    """A document each that comes back, loses spaces, a character, and is no UTF-8."""
    source, tokenizer, out = tmp_path / "src", tmp_path / "tokenizer", tmp_path / "out"
    source.mkdir()
    documents = {"same": b"int x = 1;", "line": b"int x;\nint y;\n", "nfkc": "// \ufb01x".encode(), "raw": b"int \xff;"}
    for name, content in documents.items():
        (source / f"{name}.cpp").write_bytes(content)
    said = cppmill("adopt", lossy, "--allow-lossy", "--out", tokenizer).stdout
    assert "normalization_rule_name = nmt_nfkc" in said and "add_dummy_prefix" in said
    cppmill("run", source, "--out", out, "--tokenizer", tokenizer)
    receipt = json.loads((out / "receipt.json").read_bytes())
    expected = {"characters": "nfkc", "not_utf8": "raw", "spaces": "line"}
    assert receipt["ledger"]["lost"] == {
        "documents": dict.fromkeys(expected, 1),
        "bytes": {reason: len(documents[name]) for reason, name in expected.items()},
    }
    assert receipt["ledger"]["documents"]["kept"] == len(documents)
    rows = pq.read_table(out / "tokens", columns=["path", "token_ids"]).to_pylist()
    model = SentencePieceProcessor(model_file=str(lossy))
    ids = {name: model.encode(content) for name, content in documents.items()}
    assert {Path(row["path"]).stem: row["token_ids"][1:-1] for row in rows} == ids
    cppmill("verify", out)
    made = [json.loads(line) for line in cppmill("compare", tokenizer, "--on", source, "--json").stdout.splitlines()]
    assert made[1]["lossy"] == {
        reason: {"documents": 1, "bytes": len(documents[name])} for reason, name in expected.items()
    }
    refused = cppmill("sequences", out, "--out", tmp_path / "rows", "--length", "64", "--fim", "0.5", check=False)
    assert (refused.returncode, "the tokenizer is lossy" in refused.stderr) == (2, True), refused.stderr


def test_nfc_is_left_out_or_kept_and_what_it_changes_is_counted(hugging_face, cppmill, tmp_path):
    """Documents that are in NFC, that are not, and that are not and have a byte that is not UTF-8 besides."""
    source, given = tmp_path / "src", tmp_path / "tokenizer.json"
    source.mkdir()
    documents = {"same": "int \u00e9;".encode(), "marks": "int e\u0301;".encode(), "raw": b"int e\xcc\x81;\xff"}
    for name, content in documents.items():
        (source / f"{name}.cpp").write_bytes(content)
    peer = Tokenizer.from_file(str(hugging_face / "tokenizer.json"))
    peer.normalizer = normalizers.NFC()
    peer.save(str(given))
    options = ["--bos", "<|end|>", "--eos", "<|end|>"]
    ledgers, ids = [], []
    for name, allowed in (("exact", []), ("nfc", ["--allow-lossy"])):
        said = cppmill("adopt", given, "--out", tmp_path / name, *options, *allowed).stdout
        assert ("its normaliser NFC is left out" in said, "lossy: it puts text in NFC" in said) == (
            not allowed,
            bool(allowed),
        )
        out = tmp_path / f"out-{name}"
        cppmill("run", source, "--out", out, "--tokenizer", tmp_path / name)
        cppmill("verify", out)
        ledgers.append(json.loads((out / "receipt.json").read_bytes())["ledger"])
        rows = pq.read_table(out / "tokens", columns=["path", "token_ids"]).to_pylist()
        ids.append({Path(row["path"]).stem: row["token_ids"][1:-1] for row in rows})
    assert "lost" not in ledgers[0]
    assert ledgers[1]["lost"]["documents"] == {"characters": 2}
    assert ids[0]["same"] == ids[1]["same"] == ids[1]["marks"] == peer.encode("int e\u0301;").ids != ids[0]["marks"]


def test_a_lossy_model_is_refused_by_what_it_loses(cppmill, tmp_path):
    SentencePieceTrainer.train(
        sentence_iterator=iter(["int main"] * 9), model_prefix=str(tmp_path / "m"), vocab_size=20, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    done = cppmill("adopt", tmp_path / "m.model", "--out", tmp_path / "out", check=False)
    assert done.returncode == 2
    for name in ("normalization_rule_name", "add_dummy_prefix", "remove_extra_whitespaces", "byte_fallback"):
        assert name in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.model", "m.vocab"]


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
LOSSY_STEPS = {
    "white space": ({"type": "WhitespaceSplit"}, "its pre-tokenizer WhitespaceSplit removes or replaces text"),
    "a delimiter": ({"type": "CharDelimiterSplit", "delimiter": " "}, "its pre-tokenizer CharDelimiterSplit removes"),
    "another character": (
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": True},
        "its pre-tokenizer Metaspace removes or replaces text",
    ),
    "in a sequence": (
        {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]},
        "its pre-tokenizer Whitespace removes or replaces text",
    ),
    "bytes of bytes": (BYTES, "it has two ByteLevel pre-tokenizers"),
    "what does not match": (
        {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Removed", "invert": True},
        "it removes what lies between its matches",
    ),
}


@pytest.mark.parametrize("name", LOSSY_STEPS)
def test_a_pre_tokenizer_that_loses_text_is_refused(name, hugging_face, cppmill, tmp_path):
    step, message = LOSSY_STEPS[name]
    rules = json.loads((hugging_face / "tokenizer.json").read_bytes())
    rules["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [step, BYTES]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(rules))
    done = cppmill("adopt", tmp_path / "tokenizer.json", "--out", tmp_path / "out", check=False)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": "another"}, "its run is 'another'"),
        ({"run": None}, "its run is None"),
        ({"roles": {"<EOS>": 0.0}}, "the role <EOS> has id 0.0"),
    ],
)
def test_a_manifest_that_adopting_does_not_write_is_refused(change, message, hugging_face, cppmill, tmp_path):
    cppmill("adopt", hugging_face, "--out", tmp_path / "tokenizer")
    file = tmp_path / "tokenizer" / "manifest.json"
    changed = {**json.loads(file.read_bytes()), **change}
    file.write_text(json.dumps({key: value for key, value in changed.items() if value is not None}))
    with pytest.raises(CorruptDataError, match=message):
        load_tokenizer(tmp_path / "tokenizer")


def test_a_tokenizer_that_cannot_be_adopted_is_reported_in_one_line(run, model, cppmill, tmp_path):
    refusals = [
        ([run.out / "tokenizer", "--out", tmp_path / "out"], "a tokenizer directory already"),
        ([model, "--out", run.out], "it exists already"),
        ([model, "--out", tmp_path / "no" / "out"], "there is no folder"),
        ([tmp_path / "missing.model", "--out", tmp_path / "out"], "missing.model"),
        ([model, "--out", tmp_path / "out", "--bos", "<bos>"], "<bos>: no control token of the tokenizer"),
    ]
    for arguments, said in refusals:
        done = cppmill("adopt", *arguments, check=False)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_that_the_core_refuses_is_reported_by_its_own_path(hugging_face, cppmill, tmp_path):
    peer, given = Tokenizer.from_file(str(hugging_face / "tokenizer.json")), tmp_path / "tokenizer.json"
    peer.normalizer, peer.pre_tokenizer = normalizers.NFC(), pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )  # fmt: skip
    peer.save(str(given))
    done = cppmill("adopt", given, "--out", tmp_path / "out", "--allow-lossy", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {given}: only the native core puts text in NFC")


def test_an_adopted_directory_is_the_same_each_time(model, cppmill, tmp_path):
    for name in ("a", "b"):
        cppmill("adopt", model, "--out", tmp_path / name)
    assert load_tokenizer(tmp_path / "a").digest == load_tokenizer(tmp_path / "b").digest
    assert (Path(tmp_path) / "a" / "tokenizer.model").read_bytes() == model.read_bytes()


def test_a_disk_that_refuses_is_reported_with_the_folder_and_leaves_nothing(model, tmp_path, limited):
    limited(resource.RLIMIT_FSIZE, 1000)
    with pytest.raises(ResourceError, match=r"\.out\.part: a file may have no more bytes here"):
        adopt_tokenizer(model, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_a_copy_with_another_template_is_reported_so_too(run, tmp_path, limited):
    limited(resource.RLIMIT_FSIZE, 1000)
    with pytest.raises(ResourceError, match=rf"^{tmp_path}/out: a file may have no more bytes here"):
        adopt_tokenizer(run.out / "tokenizer", tmp_path / "out", template="bos")
    assert list(tmp_path.iterdir()) == []
