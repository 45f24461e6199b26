"""Platforms of the user's own, from the file to the rows, the receipt and the page; runs without them are as before."""

import json
import pickle
import shutil
from dataclasses import replace
from functools import reduce
from hashlib import sha256

import cppmill_core
import pyarrow.parquet as pq
import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages.ingest import second_pass
from pipelines.stages.session import open_session
from pipelines.versions.retokenize import Request, retokenize
from pipelines.versions.verify import verify
from schemas.digests import canonical_json, sha256_json
from schemas.errors import ConfigError
from tests.signing import rewrite, sign_again
from transforms.records.receipts import RECEIPT

OWN = """
categories = ["board"]

[os.zenos]
id = 113
identifiers = ["__ZENOS__"]

[gpu.npu9]
id = 114
includes = ["npu9/*"]

[board.devkit]
id = 116
paths = ["devkit"]

[os.linux]
identifiers = ["__OURLINUX__"]
"""
FILES = {
    "own/kernel.cpp": b"#ifdef __ZENOS__\n#include <npu9/queue.h>\n#endif\nint kernel();\n",
    "own/devkit/start.cpp": b"#ifdef __OURLINUX__\nint start();\n#endif\n",
}
FOUND = {"own/kernel.cpp": [113, 114], "own/devkit/start.cpp": [2, 116]}


@pytest.fixture(scope="module")
def platforms_run(run, prepared, cppmill):
    """A finished run with platforms of its own, with the tokenizer of the other run; not to be changed."""

    def make(folder):
        shutil.copytree(run.sources, folder / "sources")
        for name, content in FILES.items():
            (folder / "sources" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "sources" / name).write_bytes(content)
        (folder / "mine.toml").write_text(OWN)
        cppmill(*command(folder, run, "--platform-prefix", "--platform-prefix-form", "categories"))

    folder = prepared("platforms-run", make)
    return replace(run, sources=folder / "sources", out=folder / "out")


def command(folder, run, *options):
    out = ["--out", folder / "out", "--tokenizer", run.out / "tokenizer", "--unit-bytes", 1 << 18]
    return ["run", folder / "sources", *out, "--platforms", folder / "mine.toml", *options]


def rows_of(out, *columns):
    shards = sorted((out / "tokens").glob("part-*.parquet"))
    return [row for shard in shards for row in pq.read_table(shard, columns=list(columns) or None).to_pylist()]


def test_own_labels_are_found_among_the_known_ones(platforms_run):
    found = {row["path"]: row for row in rows_of(platforms_run.out)}
    assert {name: found[name]["platform_ids"] for name in FILES} == FOUND
    assert json.loads(found["own/devkit/start.cpp"]["platform_info"])["board"] == {"devkit": ["devkit"]}
    assert any(row["platform_ids"] for name, row in found.items() if name not in FILES)


def test_the_line_has_own_categories_before_the_standard(platforms_run):
    tokenizer = cppmill_core.load_tokenizer(platforms_run.out / "tokenizer")
    rows = rows_of(platforms_run.out, "project", "path", "prefix_token_ids")
    lines = {row["path"]: tokenizer.decode(row["prefix_token_ids"]).decode() for row in rows}
    assert lines["own/kernel.cpp"] == "// platform: os=zenos gpu=npu9\n"
    assert lines["own/devkit/start.cpp"] == "// platform: os=linux board=devkit\n"
    assert any(" std=c++" in line for line in lines.values())


def test_the_receipt_and_out_have_the_vocabulary(platforms_run, cppmill):
    file = platforms_run.out / "platform_vocab.json"
    digest = sha256(file.read_bytes()).hexdigest()
    assert platforms_run.receipt["platform_vocab"] == {"digest": digest, "size": 117}
    assert platforms_run.receipt["files"][file.name] == digest
    assert cppmill_core.platform_vocab(file).labels[116] == ("board", "devkit")
    assert cppmill("verify", platforms_run.out).returncode == 0


def exchange_labels(vocab):
    ids = vocab["categories"]["gpu"]
    ids["cuda"], ids["hip"] = ids["hip"], ids["cuda"]


def rename_a_label(vocab):
    vocab["categories"]["os"]["zenon"] = vocab["categories"]["os"].pop("zenos")


def give_other_evidence(vocab):
    vocab["own"]["os"]["zenos"]["identifiers"] = ["__OTHER__"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (exchange_labels, "its labels are not those of this version with those of its own tables"),
        (rename_a_label, "its labels are not those of this version"),
        (give_other_evidence, "own/kernel.cpp has platform_ids"),
    ],
)
def test_a_vocabulary_with_own_labels_is_held_to_its_tables_and_the_documents(platforms_run, tmp_path, change, said):
    out = shutil.copytree(platforms_run.out, tmp_path / "out")
    rewrite(out / "platform_vocab.json", change)
    digest = {"digest": sha256((out / "platform_vocab.json").read_bytes()).hexdigest()}
    rewrite(out / RECEIPT, lambda value: value["platform_vocab"].update(digest))
    sign_again(out)
    assert said in " ".join(verify(str(out), 1))


def test_the_independent_checker_knows_the_published_ids_alone(platforms_run, checker):
    wrong = [line for line in checker(platforms_run.out).splitlines() if line.startswith("FAIL")]
    assert [line.split(":")[0] for line in wrong] == ["FAIL  platform ids are sorted, distinct, at most 20, known"]


def test_the_page_and_the_card_name_own_labels(platforms_run, cppmill, tmp_path):
    cppmill("report", platforms_run.out, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(label in page for label in ("npu9", "devkit", "Documents by board"))
    cppmill("provenance", platforms_run.out, "--out", tmp_path / "card")
    assert "names the 116 platform ids, from 1 on, in 7 categories" in (tmp_path / "card" / "README.md").read_text()
    assert (tmp_path / "card" / "platform_vocab.json").samefile(platforms_run.out / "platform_vocab.json")


@pytest.fixture
def copied(platforms_run, run, tmp_path):
    """A copy of the run that a test may change: the folder with sources, file and out."""
    shutil.copytree(platforms_run.out.parent, tmp_path / "copy", copy_function=shutil.copy2)
    return tmp_path / "copy"


def test_the_same_platforms_redo_nothing_wherever_they_are_and_others_only_what_differs(copied, run, cppmill):
    prefix = ("--platform-prefix", "--platform-prefix-form", "categories", "--json")
    copy = replace(run, sources=copied / "sources", out=copied / "out")
    cppmill(*command(copied, run, *prefix))  # the sources are in another place now: they are read
    before = copy.tree()
    (copied / "mine.toml").rename(copied / "other.toml")
    again = [copied / "other.toml" if word == copied / "mine.toml" else word for word in command(copied, run, *prefix)]
    assert set(copy.stages(cppmill(*again)).values()) == {0}
    vocabulary = shutil.copy(copied / "out" / "platform_vocab.json", copied / "mine.toml")
    assert set(copy.stages(cppmill(*command(copied, run, *prefix))).values()) == {0}
    assert copy.tree() == before
    vocabulary.write_text(OWN.replace("__ZENOS__", "__XENOS__"))
    ran = copy.stages(cppmill(*command(copied, run, *prefix)))
    assert ran["ingest"] == len(copy.receipt["dataset"]["shards"])
    assert ran["tokenize"] == 1  # the other documents are found as before


def test_validate_takes_the_vocabulary_of_out_and_refuses_another(copied, run, cppmill):
    options = command(copied, run, "--platform-prefix", "--platform-prefix-form", "categories")[2:]
    alone = [word for word in options if word not in ("--platforms", copied / "mine.toml")]
    before = (copied / "out" / RECEIPT).read_bytes()
    cppmill("validate", *alone)
    assert (copied / "out" / RECEIPT).read_bytes() == before
    (copied / "mine.toml").write_text(OWN.replace("id = 116", "id = 115"))
    done = cppmill("validate", *options, check=False)
    assert done.returncode == 2
    assert "were made with other platforms" in " ".join(done.stderr.split())


def test_a_changed_or_missing_vocabulary_is_found(copied, cppmill):
    file = copied / "out" / "platform_vocab.json"
    for act in (lambda: file.write_bytes(file.read_bytes().replace(b"zenos", b"xenos")), file.unlink):
        act()
        done = cppmill("verify", copied / "out", check=False)
        assert done.returncode == 1
        assert "platform_vocab.json" in (done.stdout + done.stderr).replace("\n", "")


def test_the_next_version_keeps_own_platforms_without_the_file(copied, run):
    flags = {"SOURCE": [str(copied / "sources")], "--store": str(copied / "store")}
    first = {**flags, "--platforms": str(copied / "mine.toml"), "--tokenizer": str(run.out / "tokenizer")}
    retokenize(Request(file=None, flags=first, keep=3), Reporters())
    (copied / "mine.toml").unlink()
    assert retokenize(Request(file=None, flags=flags, keep=3), Reporters()).changes is None
    (copied / "sources" / "own" / "more.cpp").write_bytes(b"#ifdef __ZENOS__\nint more();\n#endif\n")
    made = retokenize(Request(file=None, flags=flags, keep=3), Reporters())
    assert made.changes["documents"]["added"] == 1
    out = copied / "store" / "versions" / made.version
    assert {row["path"]: row["platform_ids"] for row in rows_of(out)}["own/more.cpp"] == [113]


@pytest.fixture
def request_of(copied, run):
    """Makes the request of a version with some platforms; the tokenizer is that of the other run."""

    def request(text):
        (copied / "mine.toml").write_text(text)
        flags = {"SOURCE": [str(copied / "sources")], "--store": str(copied / "store")}
        given = {"--platforms": str(copied / "mine.toml"), "--tokenizer": str(run.out / "tokenizer")}
        return Request(file=None, flags={**flags, **given}, keep=3)

    return request


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((("113", "7777"), ("114", "113"), ("7777", "114")), "os.zenos has the id 113 .* its id is 114"),
        ((("id = 113", "id = 117"),), "os.zenos has the id 113 .* its id is 117"),
        ((("os.zenos", "os.other"),), "os.zenos has the id 113 .* that is os.other"),
    ],
)
def test_no_id_of_a_platform_moves_within_a_store(request_of, change, said):
    retokenize(request_of(OWN), Reporters())
    changed = reduce(lambda text, pair: text.replace(*pair), change, OWN)
    with pytest.raises(ConfigError, match=said):
        retokenize(request_of(changed), Reporters())
    more = OWN + '\n[os.other]\nid = 117\nidentifiers = ["__OTHER__"]\n'
    assert retokenize(request_of(more), Reporters()).changes is not None


def test_a_whole_file_takes_the_place_of_a_damaged_vocabulary(request_of, copied):
    first = retokenize(request_of(OWN), Reporters())
    place = copied / "store" / "versions" / first.version / "platform_vocab.json"
    place.write_bytes(place.read_bytes()[:50])
    made = retokenize(request_of(OWN), Reporters())
    assert made.changes["documents"] == {**made.changes["documents"], "added": 0, "removed": 0, "changed": 0}
    assert not list(verify(str(copied / "store" / "versions" / made.version)))


def test_workers_get_what_is_in_the_file_and_not_its_path(copied):
    flags = {"--out": str(copied / "out"), "--platforms": str(copied / "mine.toml")}
    with open_session(load_run_config(flags=flags), Reporters()) as session:
        sent = pickle.dumps(second_pass(session))
    assert b"__ZENOS__" in sent
    assert b"mine.toml" not in sent


def test_a_run_of_old_without_the_vocabulary_is_as_it_was(copied_run, cppmill):
    file = copied_run.out / "platform_vocab.json"
    old = copied_run.receipt
    assert old["platform_vocab"] == {"digest": old["files"].pop(file.name)}
    del old["digest"]
    (copied_run.out / RECEIPT).write_bytes(canonical_json({**old, "digest": sha256_json(old)}))
    file.unlink()
    assert cppmill("verify", copied_run.out).returncode == 0
    cppmill("report", copied_run.out, "--out", copied_run.out.parent / "page.html")
    ran = copied_run.stages(cppmill(*copied_run.command, "--json"))
    assert (ran["ingest"], ran["tokenize"], ran["validate"]) == (0, 0, 0)
    assert file.read_bytes() == cppmill_core.platforms.PLATFORM_VOCAB.read_bytes()
    assert cppmill("verify", copied_run.out).returncode == 0


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_validate_alone_names_a_vocabulary_of_platforms_that_is_not_the_one_of_the_record(
    platforms_run, run, cppmill, tmp_path, damage
):
    out = shutil.copytree(platforms_run.out, tmp_path / "out", copy_function=shutil.copy2)
    path, before = out / "platform_vocab.json", (out / RECEIPT).read_bytes()
    path.write_bytes(path.read_bytes().replace(b"zenos", b"zenox")) if damage == "changed" else path.unlink()
    words = command(platforms_run.out.parent, run, "--platform-prefix", "--platform-prefix-form", "categories")
    words[words.index("--out") + 1] = out
    done = cppmill("validate", *words[1:], check=False)
    assert done.returncode == 1
    assert f"{path}: missing, or not the file of SHA-256" in done.stderr
    assert (out / RECEIPT).read_bytes() == before
    cppmill(*words)
    assert verify(str(out)) == []


def test_after_a_kill_behind_ingest_the_vocabulary_is_that_of_the_documents_not_of_the_record(copied, run, cppmill):
    words = command(copied, run, "--platform-prefix", "--platform-prefix-form", "categories")
    (copied / "mine.toml").write_text(OWN.replace("__ZENOS__", "__XENOS__").replace("id = 116", "id = 115"))
    cppmill("ingest", *[word for word in words[1:] if word not in ("--platform-prefix-form", "categories")])
    other = shutil.copytree(copied / "out", copied / "other", copy_function=shutil.copy2)
    cppmill(*words)
    assert verify(str(copied / "out")) == []
    stages = [*words[2:]]
    stages[stages.index("--out") + 1] = other
    for stage in ("tokenize", "validate"):
        cppmill(stage, *stages)
    assert (other / RECEIPT).read_bytes() == (copied / "out" / RECEIPT).read_bytes()
