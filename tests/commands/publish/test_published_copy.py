"""A download of what was pushed is verified as far as it goes, and says how far that is."""

import json
import shutil

import huggingface_hub
import pytest

import cppmill as library
from pipelines.publish.provenance import write_provenance
from schemas.digests import canonical_json, sha256_json
from transforms.records.checks.published import published_files
from transforms.records.croissant import Publication
from transforms.records.in_toto import BUILDER
from transforms.records.receipts import RECEIPT, named_files

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # huggingface_hub's own

NAME = "acme/headers"


@pytest.fixture
def download(run, hub_server, cppmill, tmp_path):
    """What the Hub gives after a push, in a folder."""
    cppmill("push", NAME, run.out)
    folder = tmp_path / "copy"
    huggingface_hub.snapshot_download(NAME, repo_type="dataset", local_dir=folder, endpoint=hub_server.url)
    return folder


@pytest.fixture
def copy(run, tmp_path):
    """The same without a Hub: the files that are published of a run, and its card."""
    folder = tmp_path / "copy"
    list(write_provenance(str(run.out), tmp_path / "card", Publication(name=NAME), builder=BUILDER))
    for name in (*published_files(run.receipt), RECEIPT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(run.out / name, folder / name)
    for name in ("README.md", "croissant.json", "provenance.json"):
        shutil.copy(tmp_path / "card" / name, folder)
    return folder


def change_receipt(folder, change):
    """Change the receipt of a copy, with a digest of its own that is right."""
    receipt = json.loads((folder / RECEIPT).read_bytes())
    change(receipt)
    receipt = {name: value for name, value in receipt.items() if name != "digest"}
    (folder / RECEIPT).write_bytes(canonical_json({**receipt, "digest": sha256_json(receipt)}))
    for name in ("provenance.json", "croissant.json"):
        (folder / name).unlink(missing_ok=True)


def test_a_download_is_what_the_receipt_says_and_what_it_lacks_is_said(run, download, cppmill):
    said = cppmill("verify", download, "--published", "--reencode", "1").stdout
    assert f"{download}: every file that is there matches the receipt" in said
    assert "not there, so not checked: " in said
    absent = json.loads(cppmill("verify", download, "--published", "--json").stdout)["absent"]
    lacking = named_files(run.receipt).keys() - published_files(run.receipt).keys()
    assert sum(absent.values()) == len(lacking)
    assert absent["units"] == sum(name.startswith("units/") for name in lacking)
    assert library.open_run(download).table("tokens", ["num_tokens"])["num_tokens"].sum() > 0


def test_python_verifies_a_download(copy):
    assert library.verify(copy, published=True) == []
    assert library.verify(copy)[0].endswith("checks what such a copy has")


def test_without_the_option_a_download_is_no_run(copy, cppmill):
    done = cppmill("verify", copy, check=False)
    assert done.returncode == 1
    assert f"`cppmill verify {copy} --published` checks what such a copy has" in done.stdout


def test_files_beside_a_download_are_not_of_the_run(copy, cppmill):
    (copy / "LICENSE").write_text("MIT")
    (copy / ".git").mkdir()
    (copy / ".git" / "config").write_text("")
    assert cppmill("verify", copy, "--published").returncode == 0
    assert cppmill("verify", copy, "--published", "--run", copy, check=False).returncode == 2


@pytest.mark.parametrize("folder", ["tokens", "documents", "tokenizer"])
def test_a_changed_a_missing_and_a_strange_file_are_found(copy, folder):
    path = next((copy / folder).iterdir())
    (copy / folder / "part-more.parquet").write_bytes(b"")
    assert library.verify(copy, published=True) == [f"{copy}/{folder}/part-more.parquet: the receipt does not name it"]
    (copy / folder / "part-more.parquet").unlink()
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (said,) = library.verify(copy, published=True)
    assert said.startswith(f"{path}: its SHA-256 is ")
    path.unlink()
    (said,) = library.verify(copy, published=True)
    assert said == f"{path}: the receipt names it, it is published, and it is missing"


def test_a_link_in_place_of_a_shard_is_refused(copy, tmp_path):
    path = next((copy / "tokens").iterdir())
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    (said,) = library.verify(copy, published=True)
    assert said.startswith(f"{path}: not a file but a link")


def test_platforms_that_no_receipt_names_are_refused_though_the_copy_has_them(copy):
    (copy / "platform_vocab.json").write_text("{}")
    change_receipt(copy, no_platforms)
    assert library.verify(copy, published=True) == [f"{copy}/platform_vocab.json: the receipt does not name it"]


def test_a_link_in_place_of_the_receipt_is_refused(copy, tmp_path):
    (copy / RECEIPT).rename(tmp_path / "elsewhere.json")
    (copy / RECEIPT).symlink_to(tmp_path / "elsewhere.json")
    assert library.verify(copy, published=True)[0].startswith(f"{copy}/{RECEIPT}: not a file but a link")


def more_tokens(receipt):
    receipt["dataset"]["tokens"] += 1


def more_control_text(receipt):
    receipt["policy"]["control_text"] = {"<BOS>": 7}


def fewer_kept(receipt):
    for unit in ("documents", "bytes"):
        receipt["ledger"][unit]["kept"] -= 1
        receipt["ledger"][unit]["in"] -= 1


def unbalanced(receipt):
    receipt["ledger"]["documents"]["in"] += 1


def other_options(receipt):
    receipt["configs"]["ingest"]["max_document_bytes"] = 10


def other_shard_tokens(receipt):
    receipt["dataset"]["shards"][0]["tokens"] += 1


def other_key(receipt):
    receipt["dataset"]["shards"][0]["unit"] = 64 * "0"


def one_more_key(receipt):
    receipt["corpus"]["nonsense"] = 1


def exclusion(receipt):
    receipt["exclusion"] = {"root": 64 * "0", "doc_ids": receipt["dataset"]["documents"]}


def shard_twice(receipt):
    receipt["dataset"]["shards"].append(receipt["dataset"]["shards"][-1])


def no_platforms(receipt):
    del receipt["files"]["platform_vocab.json"]


def list_of_no_file(receipt):
    receipt["configs"]["ingest"]["withdrawn"] = f"sha256:{64 * '0'}"


def list_without_a_root(receipt):
    list_of_no_file(receipt)
    receipt["files"]["withdrawn.json"] = 64 * "0"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (more_tokens, "it says tokens "),
        (more_control_text, "it says control_text {'<BOS>': 7}"),
        (fewer_kept, "it says kept documents "),
        (unbalanced, "the ledger does not balance"),
        (other_options, "the options allow 10"),
        (other_shard_tokens, "it says tokens "),
        (other_key, "unit"),
        (one_more_key, "corpus has the key 'nonsense', which no run writes"),
        (exclusion, "it has exclusion, which runs with a list"),
        (shard_twice, "2 times"),
        (no_platforms, "platform_vocab.json: the receipt does not name it"),
        (list_without_a_root, "it lacks exclusion, which runs with a list"),
        (list_of_no_file, "by its files None"),
    ],
)
def test_a_receipt_that_says_something_else_of_a_download_is_found(copy, change, said):
    change_receipt(copy, change)
    assert said in "\n".join(library.verify(copy, published=True))


def test_a_pair_of_shards_that_is_not_there_is_named(copy):
    """Documents and tokens of one another are told by their rows, so a shard without its other is found."""

    def leave_out(receipt):
        shard = receipt["dataset"]["shards"].pop(0)
        (copy / shard["path"]).unlink()

    change_receipt(copy, leave_out)
    assert "no shard of tokens has the same rows" in "\n".join(library.verify(copy, published=True))


@pytest.mark.parametrize("name", ["provenance.json", "croissant.json"])
@pytest.mark.parametrize("content", [b"{}", b"[1]", b"nonsense", None])
def test_a_description_of_something_else_is_found(copy, name, content):
    path = copy / name
    path.write_bytes(path.read_bytes().replace(b"0", b"1") if content is None else content)
    assert library.verify(copy, published=True) == [f"{path}: it does not describe this receipt"]


def test_an_export_is_no_copy_of_a_run(run, cppmill, tmp_path):
    cppmill("shards", run.out, "--out", tmp_path / "bin")
    done = cppmill("verify", tmp_path / "bin", "--published", check=False)
    assert done.returncode == 2
    assert "--published: " in done.stderr


def first_digest_false(value):
    value["distribution"].insert(0, {**value["distribution"][0], "sha256": 64 * "0"})


def another_place(value):
    value["distribution"].append(
        {"@type": "cr:FileObject", "@id": "more", "contentUrl": "https://example.org/x.parquet"}
    )


def another_column(value):
    value["recordSet"][0]["field"][0]["source"]["extract"]["column"] = "path"


def another_pattern(value):
    for entry in value["distribution"]:
        if entry["@type"] == "cr:FileSet":
            entry["includes"] = "more/*.parquet"


def another_license(value):
    value["license"] = ["MIT"]


@pytest.mark.parametrize(
    "change", [first_digest_false, another_place, another_column, another_pattern, another_license]
)
def test_a_description_of_other_files_is_found(copy, change):
    value = json.loads((copy / "croissant.json").read_bytes())
    change(value)
    (copy / "croissant.json").write_text(json.dumps(value))
    assert library.verify(copy, published=True) == [f"{copy}/croissant.json: it does not describe this receipt"]


@pytest.mark.parametrize("name", ["croissant.json", "provenance.json"])
def test_a_key_that_is_there_twice_is_found(copy, name):
    text = (copy / name).read_text()
    (copy / name).write_text(text.replace("{", '{"subject": [], "distribution": [], ', 1))
    assert library.verify(copy, published=True) == [f"{copy}/{name}: it does not describe this receipt"]


def test_what_a_publisher_adds_is_free(run, copy, tmp_path):
    publication = Publication(name="Other", url="https://example.org/a", creator="Me", date="2026-01-02")
    list(write_provenance(str(run.out), tmp_path / "other", publication, builder="https://example.org/me"))
    for name in ("croissant.json", "provenance.json"):
        shutil.copy(tmp_path / "other" / name, copy)
    assert library.verify(copy, published=True) == []


@pytest.mark.parametrize("option", ["--url", "--builder"])
def test_no_password_is_published(run, tmp_path, cppmill, option):
    place = "https://me:secret@example.org/a"
    done = cppmill("provenance", run.out, "--out", tmp_path / "card", option, place, check=False)
    assert done.returncode == 2
    assert "would be published" in " ".join(done.stderr.split())
    assert "secret" not in done.stderr
    assert not (tmp_path / "card").exists()
