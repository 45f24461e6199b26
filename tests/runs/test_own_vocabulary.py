"""A team's vocabulary of 200 names: from its beginning to a release, runs with it, and a second version."""

import errno
import json
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.progress import Reporters
from pipelines.versions.verify import verify
from schemas.digests import sha256_file
from tests.signing import rewrite
from tokenizer_build.vocabulary import read_vocabulary
from transforms.storage.folder import OutputFolder


@pytest.fixture(scope="module")
def names(sources):
    """200 names of one project that are too rare for a scan to keep."""
    headers = (sources / "arrow").rglob("*.h")
    found = Counter(name for path in headers for name in re.findall(r"\b[A-Za-z]\w{5,}\b", path.read_text()))
    rare = sorted(name for name, hits in found.items() if hits < 10 and re.search("[A-Z_]", name))
    assert len(rare) > 220
    return rare[:200]


@pytest.fixture(scope="module")
def begun(run, names, cppmill, tmp_path_factory):
    """A folder with the vocabulary `own`, released as 1.0, and the run `out` that it was released from."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "names.txt").write_text("# the team's names\n\n" + "\n".join(names))
    cppmill("vocab", "init", folder / "own")
    said = cppmill("vocab", "add", folder / "own", "--category", "team", "--keep", "--from", folder / "names.txt")
    assert re.search(r"(\d+) of 200 names added: ids [\d,]+ to 6,999(;|$)", said.stdout.strip())
    cppmill("vocab", "add", folder / "own", "NPY_", "--category", "npy", "--match", "prefix", "--keep")
    cppmill("vocab", "lint", "--vocab", folder / "own")
    shutil.copytree(run.sources, folder / "sources")
    cppmill(*command(folder))
    cppmill("vocab", "release", "1.0", "--vocab", folder / "own", "--tokenizer", folder / "out/tokenizer")
    return folder


@pytest.fixture
def team(begun, tmp_path):
    return shutil.copytree(begun, tmp_path / "team", copy_function=shutil.copy2)


def command(folder, out="out", *, unit_bytes=1 << 17):
    options = ["--vocab-size", 12288, "--unit-bytes", unit_bytes, "--vocab", folder / "own"]
    return ["run", folder / "sources", "--out", folder / out, *options]


def facts(folder, out="out"):
    return json.loads((folder / out / "receipt.json").read_bytes())["tokenizer"]


def fixed(folder, out="out"):
    manifest = json.loads((folder / out / "tokenizer/manifest.json").read_bytes())
    return {row["token"]: row["id"] for row in manifest["tokens"]}


def test_every_name_has_its_id_in_the_tokenizer_and_the_run_is_proved(begun, names, checker):
    ids, by_token = fixed(begun), read_vocabulary(begun / "own").by_token
    assert {name: ids[name] for name in names} == {name: by_token[name].id for name in names}
    tokenizer = cppmill_core.Tokenizer.from_dir(begun / "out/tokenizer")
    assert [tokenizer.encode(f"({name}*").to_pylist()[1:-1] for name in names] == [[ids[name]] for name in names]
    assert not checker(begun / "out", "--sources", begun / "sources")


def test_a_prefix_counts_wherever_a_name_begins_with_it_and_is_one_token(begun):
    rows = {row["term"]: row for row in pq.read_table(begun / "out/counts/terms.parquet").to_pylist()}
    texts = [path.read_text() for path in (begun / "sources/numpy").rglob("*.h")]
    in_text = sum(len(re.findall(r"\bNPY_\w*", text)) for text in texts)
    assert in_text / 2 < rows["NPY_"]["hits"] <= in_text  # comments do not count
    tokenizer = cppmill_core.Tokenizer.from_dir(begun / "out/tokenizer")
    assert tokenizer.encode("NPY_").to_pylist() == [fixed(begun)["NPY_"]]


def test_the_release_is_in_the_receipt_once_the_run_is_repeated_and_travels_with_it(team, cppmill, checker):
    before = facts(team)
    assert before["revision"] == "unreleased"
    cppmill(*command(team))
    assert facts(team) == {**before, "revision": "1.0"}
    assert not checker(team / "out")
    receipt = (team / "out/receipt.json").read_bytes()
    cppmill(*command(team))
    assert (team / "out/receipt.json").read_bytes() == receipt
    (team / "own").rename(team / "elsewhere")  # as on another machine
    cppmill("verify", team / "out")
    given = ["run", team / "sources", "--out", team / "given", "--tokenizer", team / "out/tokenizer"]
    cppmill(*given)
    assert facts(team, "given") == facts(team)
    cppmill("verify", team / "given")
    with_travelled = [*command(team)[:-1], team / "out/tokenizer"]
    cppmill(*with_travelled)
    assert (team / "out/receipt.json").read_bytes() == receipt


def test_a_second_version_of_the_dataset_moves_nothing(team, cppmill):
    cppmill(*command(team))
    before, ids = facts(team), fixed(team)
    (team / "sources/arrow/more.h").write_text("int added_by_the_test;\n" * 50)
    cppmill(*command(team))
    assert facts(team) == {**before, "kept": True}
    assert fixed(team) == ids
    cppmill("verify", team / "out")


def test_a_second_version_of_the_vocabulary_moves_no_fixed_id(team, cppmill):
    ids = fixed(team)
    added = cppmill("vocab", "add", team / "own", "zebra_crossing", "Zebra", "--category", "zebra", "--keep")
    assert "2 of 2 names added" in added.stdout
    refused = cppmill(*command(team), check=False)
    assert refused.returncode == 2
    assert "--rebuild-tokenizer" in refused.stderr and facts(team)["vocabulary"] in refused.stderr
    cppmill(*command(team, "second"))
    second = fixed(team, "second")
    assert {name: second[name] for name in ids} == ids
    assert second.keys() - ids.keys() == {"zebra_crossing", "Zebra"}
    assert cppmill("vocab", "diff", team / "out/tokenizer", team / "second/tokenizer").returncode == 0
    cppmill("vocab", "release", "1.1", "--vocab", team / "own", "--tokenizer", team / "second/tokenizer")
    cppmill(*command(team, "second"))
    assert facts(team, "second")["revision"] == "1.1"


def test_a_run_that_forgets_the_vocabulary_is_refused(team, cppmill):
    forgotten = command(team)[:-2]
    for options in ([], ["--rebuild-tokenizer"]):
        done = cppmill(*forgotten, *options, check=False)
        assert done.returncode == 2
        assert f"--vocab {team / 'out'}/tokenizer" in done.stderr


SCOPED = ["--category", "scoped", "--match", "qualified", "--keep"]


def test_a_qualified_name_is_counted_and_is_its_id_with_the_second_patterns(team, cppmill):
    cppmill("vocab", "add", team / "own", "acme::Pool", *SCOPED, "--pattern", "cpp-words-2")
    (team / "sources/arrow/more.h").write_text("acme::Pool pool(acme::Pool::size);\n" * 50)
    cppmill(*command(team, "second"), "--pattern", "cpp-words-2")
    rows = {row["term"]: row for row in pq.read_table(team / "second/counts/terms.parquet").to_pylist()}
    assert rows["acme::Pool"]["hits"] == 50  # not where it is a part of a longer name
    tokenizer = cppmill_core.Tokenizer.from_dir(team / "second/tokenizer")
    assert tokenizer.encode("acme::Pool").to_pylist() == [fixed(team, "second")["acme::Pool"]]


def test_a_name_that_the_profile_splits_is_refused_before_anything_is_read(team, cppmill):
    cppmill("vocab", "add", team / "own", "arrow::Pool", *SCOPED, "--pattern", "cpp-lines-1")
    done = cppmill(*command(team, "other"), check=False)
    assert done.returncode == 2
    assert "'arrow::Pool': the pattern cuts it into 'arrow' + '::' + 'Pool'" in done.stderr
    assert not (team / "other/documents").exists()


def test_a_verified_run_whose_release_was_changed_is_found(team, cppmill):
    cppmill(*command(team))
    path = team / "out/tokenizer/releases.lock"
    path.write_text(path.read_text().replace("1.0", "2.0"))
    assert cppmill("verify", team / "out", check=False).returncode == 1


def test_a_tokenizer_whose_vocabulary_gives_a_name_another_id_is_refused(team, cppmill):
    """All its other files agree, each with a true digest: only the vocabulary beside it shows that two ids moved."""
    folder = team / "out/tokenizer"
    moved = [row for row in json.loads((folder / "manifest.json").read_bytes())["tokens"] if row["id"] >= 6990][:2]
    ids = {row["token"]: other["id"] for row, other in zip(moved, reversed(moved), strict=True)}
    rewrite(folder / "tokenizer.json", lambda rules: rules["model"]["vocab"].update(ids))

    def exchange(manifest):
        for row in manifest["tokens"]:
            row["id"] = ids.get(row["token"], row["id"])
        manifest["files"]["tokenizer.json"] = sha256_file(folder / "tokenizer.json")

    rewrite(folder / "manifest.json", exchange)
    (folder / "vocab.tsv").unlink()
    given = ["run", team / "sources", "--out", team / "given", "--tokenizer", folder]
    said = cppmill(*given, check=False).stderr
    assert any(f"vocabulary.json: it has no {name!r} with the manifest's id {id_}" in said for name, id_ in ids.items())


def test_a_store_of_versions_keeps_the_vocabulary(team, cppmill):
    store = ["retokenize", team / "sources", "--store", team / "store"]
    cppmill(*store, *command(team)[4:])
    (team / "sources/arrow/more.h").write_text("int added_by_the_test;\n" * 50)
    cppmill(*store)
    versions = team / "store/versions"
    first, second = (facts(versions, name) for name in ("v000001", "v000002"))
    assert first == second and "vocabulary" in first
    rebuilt = cppmill(*store, "--rebuild-tokenizer", check=False)
    assert rebuilt.returncode == 2
    assert "--vocab: not given" in rebuilt.stderr
    cppmill(*store, "--rebuild-tokenizer", "--vocab", team / "own")
    assert facts(versions, "v000003")["digest"] != first["digest"]
    cppmill("verify", versions / "v000003")


@pytest.mark.engines
def test_prism_gives_the_same_receipt(begun, cppmill_process, tmp_path):
    team = shutil.copytree(begun, tmp_path / "team", copy_function=shutil.copy2)
    for out, options in (("local", []), ("prism", ["--engine", "prism"])):
        cppmill_process(*command(team, out, unit_bytes=1 << 18), *options)
    assert (team / "local/receipt.json").read_bytes() == (team / "prism/receipt.json").read_bytes()


@pytest.fixture(scope="module")
def trees(cppmill, tmp_path_factory):
    """A run of some projects that share names: parts of pyarrow's headers."""
    folder = tmp_path_factory.mktemp("proposed")
    for name in ("array", "compute", "flight", "util"):
        shutil.copytree(Path(pa.get_include()) / "arrow" / name, folder / "sources" / name)
    cppmill("vocab", "init", folder / "own")
    cppmill(*command(folder)[:-2])
    return folder


def test_what_is_proposed_from_a_run_becomes_one_token_each_once_it_is_pasted(trees, cppmill):
    said = cppmill("vocab", "propose", trees / "out", "--names", 30, "--morphemes", 5).stdout
    assert re.search(r"from \d+ documents of 4 projects", said)
    (trees / "own/proposed.toml").write_text(said)
    found = tomllib.loads(said)
    names = {name: int(number) for number, name in found["candidates"][0]["tokens"].items()}
    pieces = {name for group in found.get("morphemes", []) for name in group["tokens"].values()}
    assert names
    before = cppmill_core.Tokenizer.from_dir(trees / "out/tokenizer")
    assert min(len(before.encode(name)) for name in {*names, *pieces}) > 1
    cppmill("vocab", "lint", "--vocab", trees / "own")
    cppmill(*command(trees, "again"))
    after = cppmill_core.Tokenizer.from_dir(trees / "again/tokenizer")
    assert {name: after.encode(f"({name}*").to_pylist()[1:-1] for name in names} == {
        name: [number] for name, number in names.items()
    }
    assert {len(after.encode(piece)) for piece in pieces} <= {1}
    again = cppmill("vocab", "propose", trees / "again", "--names", 30).stdout
    assert not names.keys() & set(re.findall(r'= "(\w+)"', again))


def test_names_are_proposed_from_a_run_that_counted_nothing(trees, cppmill):
    given = ["--tokenizer", trees / "out/tokenizer"]
    cppmill("run", trees / "sources", "--out", trees / "given", *given, "--unit-bytes", 1 << 17)
    assert not (trees / "given/counts").exists()
    lines = [cppmill("vocab", "propose", trees / out).stdout.splitlines()[1:] for out in ("out", "given")]
    assert lines[0] == lines[1]


def test_a_vocabulary_that_changes_between_scan_and_build_builds_no_tokenizer(team, cppmill, monkeypatch):
    words, begin = command(team, "other"), Reporters.stage_done

    def add_meanwhile(self, stage, *rest):
        begin(self, stage, *rest)
        if stage == "scan":
            monkeypatch.undo()
            cppmill("vocab", "add", team / "own", "npy_bool_meanwhile", "--category", "late")

    monkeypatch.setattr(Reporters, "stage_done", add_meanwhile)
    done = cppmill(*words, check=False)
    assert done.returncode == 2
    assert f"--vocab {team / 'own'}: it changed while the run used it; run again" in done.stderr
    shutil.copytree(team / "other", team / "alone")
    words[words.index(team / "other")] = team / "alone"
    alone = cppmill("build", *words[2:], check=False)
    assert alone.returncode == 2
    assert f"{team / 'alone'} was scanned with another one; run `cppmill scan` again" in alone.stderr
    cppmill(*words)
    assert verify(str(team / "alone")) == []


def test_nothing_is_released_or_added_in_the_tokenizer_of_a_run(team, cppmill):
    folder = team / "out/tokenizer"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for command in (["release", "2.0", "--tokenizer", folder, "--vocab", folder], ["add", folder, "acme_"]):
        done = cppmill("vocab", *command, check=False)
        assert done.returncode == 2
        assert "receipt.json lists every file there; name another folder" in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_rebuild_from_the_copy_of_the_vocabulary_in_out_goes_on_wherever_it_failed(team, cppmill, monkeypatch):
    shutil.rmtree(team / "own")
    (team / "sources/numpy/more.h").write_bytes(b"int frobnicate_widget(WidgetFactoryBase* base);\n" * 400)
    words = command(team)
    words[words.index(team / "own")] = team / "out/tokenizer"
    lock = (team / "out/tokenizer/ids.lock").read_bytes()
    before, adopt = shutil.copytree(team / "out", team / "before", copy_function=shutil.copy2), OutputFolder.adopt
    for last in range(6):
        shutil.rmtree(team / "out")
        shutil.copytree(before, team / "out", copy_function=shutil.copy2)
        calls = iter(range(last))

        def fail(*arguments, calls=calls, **options):
            if next(calls, None) is None:
                raise OSError(errno.ENOSPC, "No space left on device")
            return adopt(*arguments, **options)

        monkeypatch.setattr(OutputFolder, "adopt", fail)
        assert cppmill(*words, "--rebuild-tokenizer", check=False).returncode != 0
        monkeypatch.undo()
        cppmill(*words, "--rebuild-tokenizer")
        assert (team / "out/tokenizer/ids.lock").read_bytes() == lock
    assert verify(str(team / "out")) == []
