"""The command `provenance` on finished runs, read back by the libraries that its three files are for.

The large ones are imported where they are used, as every worker of the tests imports this file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import textwrap
from itertools import islice

import pyarrow.parquet as pq
import pytest
from google.protobuf import json_format
from huggingface_hub import DatasetCard
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

from schemas.digests import canonical_json, sha256_file
from tests.signing import rewrite, seal

LICENSES = {"apache": "Apache-2.0", "both": "MIT", "silent": None}


@pytest.fixture(scope="module")
def folder(run, cppmill, tmp_path_factory):
    """What the command writes of the run that built its tokenizer."""
    made = tmp_path_factory.mktemp("provenance") / "card"
    cppmill("provenance", run.out, "--out", made, "--name", "headers <1>", "--date", "2026-11-30", "--creator", "A|B")
    return made


@pytest.fixture(scope="module")
def licensed(run, cppmill, tmp_path_factory):
    """A run of real headers from JSONL that tells projects and licences, with the tokenizer of the other run."""
    root = tmp_path_factory.mktemp("licensed")
    headers = sorted((run.sources / "numpy").rglob("*.h"))[:9]
    with (root / "corpus.jsonl").open("w") as file:
        for place, header in enumerate(headers):
            project = list(LICENSES)[place % 3]
            row = {"path": header.name, "content": header.read_text(), "project": project, "l": LICENSES[project]}
            file.write(json.dumps(row if place != 1 else {**row, "l": "Zlib"}) + "\n")
    columns = '[ingest]\nproject_column = "project"\nlicense_column = "l"\n'
    (root / "run.toml").write_text(columns)
    options = ("--config", root / "run.toml", "--tokenizer", run.out / "tokenizer")
    cppmill("run", root / "corpus.jsonl", "--out", root / "out", *options)
    cppmill("provenance", root / "out", "--out", root / "card")
    return root


@pytest.fixture(scope="module")
def sentencepiece(run, cppmill, tmp_path_factory):
    """A run whose tokenizer is a SentencePiece model."""
    root = tmp_path_factory.mktemp("sentencepiece")
    options = ("--profile", "sentencepiece-32k", "--vocab-size", "3000")
    cppmill("run", run.sources / "numpy", "--out", root / "out", *options)
    cppmill("provenance", root / "out", "--out", root / "card")
    return root / "card"


def statement_of(folder):
    return json.loads((folder / "provenance.json").read_bytes())


def test_a_password_in_the_creators_address_is_not_published(run, cppmill, tmp_path):
    cppmill("provenance", run.out, "--out", tmp_path / "card", "--creator", "Me https://me:s3cr3t@host/x")
    files = [path for path in (tmp_path / "card").rglob("*") if path.is_file()]
    assert files and not [path.name for path in files if b"s3cr3t" in path.read_bytes()]


def test_the_statement_is_in_totos_and_slsas(folder):
    value = statement_of(folder)
    statement = Statement.copy_from_pb(json_format.ParseDict(value, StatementMessage()))
    statement.validate()
    assert statement.pb.predicate_type == "https://slsa.dev/provenance/v1"
    provenance = json_format.ParseDict(value["predicate"], Provenance())
    assert provenance.build_definition.build_type
    assert provenance.run_details.builder.id


def test_subjects_and_byproducts_are_every_file_of_the_run_with_its_digest(run, folder):
    value = statement_of(folder)
    listed = [*value["subject"], *value["predicate"]["runDetails"]["byproducts"]]
    files = {path.relative_to(run.out).as_posix(): path for path in run.out.rglob("*") if path.is_file()}
    files = {name: path for name, path in files.items() if not name.startswith((".cache/", ".lock"))}
    assert {one["name"]: one["digest"]["sha256"] for one in listed} == {n: sha256_file(p) for n, p in files.items()}
    subjects = {one["name"] for one in value["subject"]}
    assert {name for name in subjects if name.endswith(".parquet") and "decisions" not in name} == {
        name for name in files if name.startswith(("documents/part-", "tokens/part-"))
    }
    assert "tokenizer/tokenizer.json" in subjects


def test_the_statement_says_what_the_receipt_says(run, licensed, folder):
    definition = statement_of(folder)["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["configs"] == run.receipt["configs"]
    assert definition["internalParameters"]["code"] == run.receipt["code"]
    corpus, tokenizer, platforms = definition["resolvedDependencies"]
    assert corpus["digest"] == {"cppmill_corpus_1": run.receipt["corpus"]["digest"]}
    assert tokenizer["digest"]["sha256"] == sha256_file(run.out / "tokenizer" / "manifest.json")
    assert platforms["digest"]["sha256"] == run.receipt["platform_vocab"]["digest"]
    given = statement_of(licensed / "card")["predicate"]["buildDefinition"]["resolvedDependencies"][1]
    assert (tokenizer["annotations"]["built_in_this_run"], given["annotations"]["built_in_this_run"]) == (True, False)


# Of mlcroissant: its parser of RDF, and its use of pandas.
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph:DeprecationWarning", "ignore:The inplace keyword")
def test_mlcroissant_finds_nothing_wrong_and_reads_the_rows(run, folder, monkeypatch):
    import mlcroissant

    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("the network was asked"))
    found = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    assert found.metadata.name == "headers <1>"
    columns = [field.name for field in pq.read_schema(next((run.out / "tokens").glob("part-*.parquet")))]
    shards = sorted((run.out / "tokens").glob("part-*.parquet"))
    rows = [row for shard in shards[:5] for row in pq.read_table(shard).to_pylist()][:5]
    for record, row in zip(islice(found.records("tokens"), 5), rows, strict=True):
        assert list(record) == [f"tokens/{name}" for name in columns]
        assert record["tokens/token_ids"] == row["token_ids"]
        assert record["tokens/doc_id"].decode() == row["doc_id"]
    document = next(iter(found.records("documents")))
    assert hashlib.sha256(document["documents/content"]).hexdigest() == document["documents/doc_id"].decode()


def test_every_file_of_the_croissant_description_has_its_digest(folder):
    value = json.loads((folder / "croissant.json").read_text())
    files = [one for one in value["distribution"] if one["@type"] == "cr:FileObject"]
    assert len(files) > 5
    assert {one["contentUrl"]: one["sha256"] for one in files} == {
        one["contentUrl"]: sha256_file(folder / one["contentUrl"]) for one in files
    }


def test_datasets_follows_the_card(run, folder, tmp_path):
    import datasets
    import transformers

    def load(*name):
        return datasets.load_dataset(str(folder), *name, split="train", cache_dir=str(tmp_path))

    tokens, documents = load("tokens"), load("documents")
    assert tokens.num_rows == documents.num_rows == run.receipt["dataset"]["documents"]
    assert sum(tokens["num_tokens"]) == run.receipt["dataset"]["tokens"]
    assert sum(map(len, documents["content"])) == run.receipt["dataset"]["bytes"]
    assert load().column_names == tokens.column_names
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")
    content = dict(zip(documents["doc_id"], documents["content"], strict=True))
    row = tokens[0]
    text = tokenizer.decode(row["token_ids"], skip_special_tokens=True)
    assert text.encode() == content[row["doc_id"]]


def test_datasets_does_not_return_cached_rows_of_another_folder_of_this_name(run, folder, licensed, tmp_path):
    import datasets

    assert folder.name == (licensed / "card").name
    for card, rows in ((folder, run.receipt["dataset"]["documents"]), (licensed / "card", 9)):
        for config in ("tokens", "documents"):
            loaded = datasets.load_dataset(str(card), config, split="train", cache_dir=str(tmp_path))
            assert loaded.num_rows == rows


@pytest.mark.parametrize("name", ["folder", "sentencepiece"])
def test_the_example_of_the_card_works(name, request):
    folder = request.getfixturevalue(name)
    example = re.search(r"(?<=\n\n)    import [\s\S]*?\n(?=\n)", (folder / "README.md").read_text())
    code = f"""card = {str(folder)!r}
{textwrap.dedent(example[0])}
data = content if "content" in dir() else text.encode()
assert data == dict(zip(documents["doc_id"], documents["content"]))[tokens[0]["doc_id"]]
"""
    exec(code, {})


def test_the_card_lists_licences_by_project(licensed):
    card = DatasetCard.load(licensed / "card" / "README.md")
    assert card.data.license == ["apache-2.0", "mit", "unknown", "zlib"]
    assert "| both | 3 | MIT (2), Zlib (1) |" in card.text
    assert "| silent | 3 | not given (3) |" in card.text
    assert json.loads((licensed / "card" / "croissant.json").read_text())["license"] == ["Apache-2.0", "MIT", "Zlib"]


def test_the_same_arguments_give_the_same_bytes(run, cppmill, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second, second):
        cppmill("provenance", run.out, "--out", folder, "--name", "n")
    for name in ("README.md", "croissant.json", "provenance.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert sorted(path.name for path in first.rglob("*")) == sorted(path.name for path in second.rglob("*"))


def test_links_of_an_earlier_run_go(run, cppmill, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "card", symlinks=True)
    (tmp_path / "card" / "tokens" / "part-old.parquet").symlink_to("nowhere")
    cppmill("provenance", run.out, "--out", tmp_path / "card")
    shards = {path.name for path in (run.out / "tokens").glob("part-*")}
    assert {path.name for path in (tmp_path / "card" / "tokens").iterdir()} == shards
    assert all(path.exists() for path in (tmp_path / "card").rglob("*"))


@pytest.mark.parametrize("inside", [True, False])
def test_a_folder_of_something_else_is_refused_and_left_alone(inside, copied_run, cppmill, tmp_path):
    folder = copied_run.out / "card" if inside else copied_run.sources.parent / "mine"
    if not inside:
        (folder / "documents").mkdir(parents=True)
        (folder / "documents" / "thesis.txt").touch()
    done = cppmill("provenance", copied_run.out, "--out", folder, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert not (folder / "README.md").exists()
    assert cppmill("verify", copied_run.out).returncode == 0


@pytest.mark.parametrize("name", ["README.md", "croissant.json", "provenance.json", "thesis.tex"])
def test_a_foreign_file_is_not_overwritten(name, run, cppmill, tmp_path):
    (tmp_path / name).write_text("mine")
    done = cppmill("provenance", run.out, "--out", tmp_path, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [f"error: --out {tmp_path}: {tmp_path / name} was not made by this command; name another folder"],
    )
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_card_of_another_run_is_replaced_and_other_files_stay(run, licensed, cppmill, tmp_path):
    (tmp_path / ".gitattributes").write_text("* binary")
    cppmill("provenance", licensed / "out", "--out", tmp_path, "--name", "first")
    (tmp_path / "LICENSE").write_text("MIT")
    cppmill("provenance", run.out, "--out", tmp_path, "--name", "second")
    assert DatasetCard.load(tmp_path / "README.md").data.pretty_name == "second"
    assert ((tmp_path / "LICENSE").read_text(), (tmp_path / ".gitattributes").read_text()) == ("MIT", "* binary")


def test_a_run_whose_name_is_not_utf8_is_described(copied_run, command_line, repository, tmp_path):
    out = copied_run.out.rename(tmp_path / os.fsdecode(b"run-\xff"))
    command = [*command_line, "provenance", out, "--out", tmp_path / "card"]  # what it prints is no UTF-8 either
    subprocess.run(command, check=True, capture_output=True, cwd=repository)
    assert DatasetCard.load(tmp_path / "card" / "README.md").data.pretty_name == "run-\N{REPLACEMENT CHARACTER}"
    assert json.loads((tmp_path / "card" / "croissant.json").read_text())["name"] == "run-\N{REPLACEMENT CHARACTER}"
    assert all(path.exists() for path in (tmp_path / "card").rglob("*"))


def test_a_receipt_that_was_changed_is_refused(copied_run, cppmill, tmp_path):
    receipt = copied_run.receipt | {"code": dict.fromkeys(("cppmill", "cppmill-core"), "9")}
    (copied_run.out / "receipt.json").write_bytes(canonical_json(receipt))
    done = cppmill("provenance", copied_run.out, "--out", tmp_path / "card", check=False)
    assert done.returncode == 1
    assert "its content gives" in done.stderr
    assert not (tmp_path / "card").exists()


def test_an_unfinished_run_is_one_line_of_error(cppmill, tmp_path):
    (tmp_path / "run").mkdir()
    done = cppmill("provenance", tmp_path / "run", "--out", tmp_path / "card", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize("option", [("--date", "tomorrow"), ("--builder", "me"), ("--url", "example.org")])
def test_an_option_that_the_formats_do_not_take_is_one_line_of_error(option, run, cppmill, tmp_path):
    done = cppmill("provenance", run.out, "--out", tmp_path / "card", *option, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {option[0]} {option[1]}: not allowed; it takes ")
    assert not (tmp_path / "card").exists()


def test_a_device_is_no_folder(run, cppmill):
    done = cppmill("provenance", run.out, "--out", "/dev/null", check=False)
    assert (done.returncode, done.stderr) == (2, "error: --out /dev/null: not a folder; name another\n")


def test_a_folder_of_links_that_is_a_link_itself_is_left_alone(run, cppmill, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/mine").symlink_to("/etc/hostname")
    (tmp_path / "card").mkdir()
    (tmp_path / "card/documents").symlink_to(tmp_path / "elsewhere")
    done = cppmill("provenance", run.out, "--out", tmp_path / "card", check=False)
    assert (done.returncode, "card/documents was not made by this command" in done.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["mine"]


@pytest.mark.parametrize("change", [{"code": {}}, {"platform_vocab": -1}, {"platform_vocab": {}}], ids=str)
@pytest.mark.parametrize("command", ["provenance", "lineage", "report"])
def test_a_receipt_of_another_form_is_one_line(copied_run, cppmill, tmp_path, command, change):
    rewrite(copied_run.out / "receipt.json", lambda value: (value.update(change), seal(value)))
    done = cppmill(command, copied_run.out, "--out", tmp_path / "made", check=False)
    assert done.returncode == 1
    assert "receipt.json: not laid out as a receipt (" in done.stderr
