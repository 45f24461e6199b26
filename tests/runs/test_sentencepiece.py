"""Whole runs with SentencePiece vocabularies: dataset, receipt and proof, the same on any number of threads."""

import hashlib
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from cppmill_core import load_tokenizer

from tests.signing import mend_tokenizer, rewrite, sign_again

HEADERS = ("ndarraytypes.h", "npy_common.h", "npy_math.h", "ufuncobject.h")
HOSTILE = {
    "bytes.h": bytes(range(1, 256)),
    "space.h": "a\u2581 \u2581b // \u2585".encode(),
    "lines.h": b"\xef\xbb\xbf#define X\t\t1\r\n\r\n\t \tint x;\r\n",
    "control.h": b"// <EOS> <BOS> <0x41> <UNK>\n\xed\xa0\x80\xff",
}


@pytest.fixture(scope="module")
def headers(sources, tmp_path_factory):
    """Some of numpy's headers."""
    folder = tmp_path_factory.mktemp("headers") / "numpy"
    folder.mkdir()
    for name in HEADERS:
        shutil.copy(sources / "numpy" / "numpy" / name, folder)
    return folder


@pytest.fixture(scope="module")
def hostile_sources(headers, tmp_path_factory):
    """The headers, and a project of files that lossy tokenizers lose something of."""
    folder = tmp_path_factory.mktemp("hostile") / "hostile"
    folder.mkdir()
    for name, content in HOSTILE.items():
        (folder / name).write_bytes(content)
    return [headers, folder]


@pytest.fixture(scope="module", params=["sentencepiece-bpe", "sentencepiece-unigram"])
def made(request, cppmill, hostile_sources, tmp_path_factory):
    """The same run twice: its folders on one thread and on two."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "run.toml").write_text(
        f'[build]\nkind = "{request.param}"\nvocab_size = 1000\n[ingest]\nunit_bytes = 65536'
    )
    outs = {}
    for threads in (1, 2):
        outs[threads] = folder / f"out-{threads}"
        options = ["--config", folder / "run.toml", "--threads", threads, "--profile", "sentencepiece-32k"]
        cppmill("run", *hostile_sources, "--out", outs[threads], *options)
    return outs


def receipt(out):
    return json.loads((out / "receipt.json").read_bytes())


def test_a_run_makes_a_dataset_that_verify_proves(made, cppmill):
    assert "everything matches the receipt" in cppmill("verify", made[1]).stdout
    assert receipt(made[1])["tokenizer"]["vocab_size"] == 1000
    assert receipt(made[1])["policy"]["control_text"] == {"<BOS>": 1, "<EOS>": 1, "<UNK>": 1}


def test_byte_tables_count_the_bytes_of_every_document(made, cppmill, tmp_path):
    tokenizer, out = made[1] / "tokenizer", tmp_path / "tables.npz"
    done = cppmill("byte-tables", "--tokenizer", tokenizer, "--out", out, "--check", made[1])
    assert f"for each of {receipt(made[1])['corpus']['documents']:,} documents" in done.stdout


def test_digests_are_equal_for_one_thread_and_two(made):
    one, two = receipt(made[1]), receipt(made[2])
    assert one["tokenizer"] == two["tokenizer"]
    assert one["dataset"]["digest"] == two["dataset"]["digest"]


def test_every_document_decodes_to_its_bytes(made):
    tokenizer = load_tokenizer(made[1] / "tokenizer", receipt(made[1])["tokenizer"]["digest"])
    rows = pq.read_table(made[1] / "tokens")
    ends = {"bos": tokenizer.control_id("<BOS>"), "eos": tokenizer.control_id("<EOS>")}
    decoded = tokenizer.decode_batch(rows["token_ids"].combine_chunks(), **ends).to_pylist()
    assert [hashlib.sha256(text).hexdigest() for text in decoded] == rows["doc_id"].to_pylist()
    assert set(HOSTILE.values()) <= set(decoded)


def test_a_second_run_does_nothing(made, cppmill, hostile_sources):
    options = ["--config", made[1].parent / "run.toml", "--profile", "sentencepiece-32k", "--json"]
    done = cppmill("run", *hostile_sources, "--out", made[1], *options)
    ended = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "stage_done"]
    assert {event["summary"].get("units run", 0) for event in ended} == {0}


@pytest.fixture
def copied(made, hostile_sources, cppmill, tmp_path):
    """A copy of the run, and the command that makes it."""
    options = ["--config", made[1].parent / "run.toml", "--profile", "sentencepiece-32k"]
    return shutil.copytree(made[1], tmp_path / "out"), ["run", *hostile_sources, "--out", tmp_path / "out", *options]


def reserve_the_last_control_token(manifest):
    token = manifest["tokens"].pop()
    manifest["reserved"] = [[token["id"], token["id"]], *manifest["reserved"]]


FORGED = {
    "reserved": reserve_the_last_control_token,
    "roles": lambda manifest: manifest.update(roles={"<BOS>": 5}),
    "tokens": lambda manifest: manifest["tokens"][0].update(band="keywords"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_manifest_that_the_vocabulary_does_not_give_is_found_though_a_run_took_it(copied, cppmill, name):
    out, command = copied
    rewrite(out / "tokenizer/manifest.json", FORGED[name])
    mend_tokenizer(out)
    sign_again(out)
    cppmill(*command)
    done = cppmill("verify", out, check=False)
    assert (done.returncode, f"{name} of its manifest are not what" in done.stdout) == (1, True)


def test_the_table_of_ids_is_that_of_the_model(copied, cppmill):
    path = copied[0] / "tokenizer/vocab.tsv"
    path.write_bytes(path.read_bytes().replace(b"\tnormal\n", b"\tcontrol\n", 1))
    sign_again(copied[0])
    done = cppmill("verify", copied[0], check=False)
    assert (done.returncode, "vocab.tsv: not the table of the tokenizer's ids" in done.stdout) == (1, True)


def test_a_changed_id_is_found_by_validation(made, cppmill, tmp_path):
    shutil.copytree(made[1], tmp_path / "out")
    shard = next((tmp_path / "out" / "tokens").glob("part-*.parquet"))
    table = pq.read_table(shard)
    ids = table["token_ids"].combine_chunks()
    values = ids.values.to_numpy().copy()
    values[1] = values[1] + 1 if values[1] < 999 else 400
    column = type(ids).from_arrays(ids.offsets, values.astype(np.uint16)).cast(table.schema.field("token_ids").type)
    changed = table.set_column(table.schema.get_field_index("token_ids"), table.schema.field("token_ids"), column)
    pq.write_table(changed, shard)
    done = cppmill("verify", tmp_path / "out", check=False)
    assert done.returncode == 1
    assert shard.name in done.stdout + done.stderr


def test_another_run_takes_the_tokenizer_and_a_wrong_size_names_both(made, cppmill, headers, tmp_path):
    given = ["run", headers, "--out", tmp_path / "out", "--tokenizer", made[1] / "tokenizer"]
    refused = cppmill(*given, "--vocab-size", 1001, check=False)
    assert refused.returncode == 2
    assert "--vocab-size 1001" in refused.stderr and "has 1,000 ids" in refused.stderr
    cppmill(*given, "--vocab-size", 1000)
    assert receipt(tmp_path / "out")["tokenizer"]["digest"] == receipt(made[1])["tokenizer"]["digest"]
    cppmill("verify", tmp_path / "out")


def test_a_size_that_the_text_cannot_fill_ends_with_both_sizes(cppmill, hostile_sources, tmp_path):
    options = ["--profile", "sentencepiece-32k", "--vocab-size", 500_000]
    done = cppmill("run", hostile_sources[1], "--out", tmp_path / "out", *options, check=False)
    assert done.returncode == 2
    assert "vocab_size = 500000: the text fills only" in done.stderr


def test_encode_and_decode_take_the_directory(made, cppmill, tmp_path):
    (tmp_path / "x.h").write_bytes(HOSTILE["lines.h"])
    ids = cppmill("encode", "--tokenizer", made[1] / "tokenizer", tmp_path / "x.h").stdout
    (tmp_path / "ids.json").write_text(ids)
    decoded = cppmill("decode", "--tokenizer", made[1] / "tokenizer", tmp_path / "ids.json").stdout
    assert decoded.encode().replace(b"\r\n", b"\n") == HOSTILE["lines.h"].replace(b"\r\n", b"\n")
