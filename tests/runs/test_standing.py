"""A run keeps the tokenizer that OUT has: no id moves unless a rebuild is asked for."""

import json
import re
import shutil

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engines.worker_check import check_workers
from pipelines.tokenizers.vocab import diff
from pipelines.versions.verify import verify
from schemas.digests import with_digest

NEW = b"".join(b"int frobnicate_widget_%d(WidgetFactoryBase* widget_factory_base);\n" % number for number in range(400))


@pytest.fixture
def grown(copied_run):
    """A finished run whose sources have one more file."""
    (copied_run.sources / "arrow" / "frobnicate.h").write_bytes(NEW)
    return copied_run


def tokenizer_files(run):
    return {path.name: path.read_bytes() for path in (run.out / "tokenizer").iterdir()}


def number_of(texts):
    """The sum of numbers as they are shown."""
    return sum(int(text.replace(",", "")) for text in texts)


def test_new_sources_are_tokenized_with_the_tokenizer_that_stands(grown, cppmill, checker):
    before, receipt = tokenizer_files(grown), grown.receipt
    counts = {path: text for path, text in grown.tree().items() if path.startswith("counts/")}
    done = cppmill(*grown.command)
    assert tokenizer_files(grown) == before
    assert {path: text for path, text in grown.tree().items() if path.startswith("counts/")} == counts
    assert grown.receipt["tokenizer"] == {**receipt["tokenizer"], "kept": True}
    assert grown.receipt["dataset"]["documents"] == receipt["dataset"]["documents"] + 1
    assert not checker(grown.out, "--sources", grown.sources)
    assert cppmill("verify", grown.out).returncode == 0
    kept = re.search(r"^new text +(\S+) bytes per token on ([\d,]+) bytes .* rest has (\S+)$", done.stderr, re.M)
    assert kept and float(kept[1]) != float(kept[3]) and int(kept[2].replace(",", "")) >= len(NEW)
    assert re.search(r"^no id .*\bWidgetFactoryBase \(\d tokens, 400 times\)", done.stderr, re.M)
    assert re.search(r"^rebuild .* bytes per token of the new text \(\+\d", done.stderr, re.M)
    tree = grown.tree()
    again = cppmill(*grown.command)
    assert grown.tree() == tree
    assert "no id" not in again.stderr


def test_a_tokenizer_that_an_earlier_version_built_of_the_same_documents_is_verified(copied_run, cppmill, monkeypatch):
    """The documents shards get names of the present version; the counts name those of the earlier one."""
    shards = set(copied_run.receipt["files"])
    monkeypatch.setattr(cppmill_core, "__version__", "9.9.9")
    monkeypatch.setattr(check_workers, "__defaults__", ("9.9.9",))
    assert cppmill(*copied_run.command).returncode == 0
    assert not {name for name in shards & set(copied_run.receipt["files"]) if name.startswith("documents/")}
    assert "kept" not in copied_run.receipt["tokenizer"]
    done = cppmill("verify", copied_run.out, "--reencode", "1")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plan_says_beforehand_that_the_tokenizer_is_kept(grown, cppmill):
    command = ["plan", *grown.command[1:]]
    cppmill("ingest", *grown.command[1:])
    for options in ([], ["--rebuild-tokenizer"]):
        planned = map(json.loads, cppmill(*command, "--json", *options).stdout.splitlines())
        to_run = {(line["stage"], line["action"]) for line in planned if line["action"] == "run"}
        assert (("scan", "run") in to_run) == (("build", "run") in to_run) == bool(options)
        assert ("tokenize", "run") in to_run
    assert "--rebuild-tokenizer builds another" in cppmill(*command).stdout


def test_a_plan_of_sources_that_are_not_read_yet_names_no_units_of_later_stages(grown, cppmill):
    planned = cppmill("plan", *grown.command[1:]).stdout
    assert re.search(r"^build +skip +all units +the tokenizer in OUT is kept", planned, re.M)
    assert re.search(r"^tokenize +run +units not known yet ", planned, re.M)


def test_a_rebuild_says_how_many_ids_move_and_is_what_a_new_run_gives(grown, cppmill, tmp_path):
    old = shutil.copytree(grown.out / "tokenizer", tmp_path / "old")
    done = cppmill(*grown.command, "--rebuild-tokenizer")
    lines, broken = diff(old, grown.out / "tokenizer", documents=None, id_maps=(), every_token=False)
    rows = {line.split()[0]: number_of(line.split()[1:]) for line in lines if line.startswith(("kept ", "moved "))}
    said = re.search(r"^ids: (\S+) kept, (\S+) moved, .*; 0 of the moved ids are fixed$", done.stderr, re.M)
    assert said and not broken
    assert {"kept": number_of([said[1]]), "moved": number_of([said[2]])} == rows
    fresh = type(grown)(grown.sources, tmp_path / "fresh")
    cppmill(*fresh.command)
    assert fresh.tree() == grown.tree()
    assert "kept" not in grown.receipt["tokenizer"]


def test_after_a_rebuild_that_fails_the_tokenizer_is_kept_in_the_way_that_the_error_names(grown, cppmill):
    before = (grown.out / "tokenizer" / "tokenizer.json").read_bytes()
    failed = cppmill(*grown.command, "--rebuild-tokenizer", "--vocab-size", "131072", check=False)
    assert failed.returncode == 2
    assert "merges could be learned" in failed.stderr
    refused = cppmill(*grown.command, check=False)
    assert refused.returncode == 1
    way = re.search(r"keep the tokenizer with (--tokenizer) (\S+), or", refused.stderr)
    assert cppmill("run", grown.sources, "--out", grown.out, *way.groups()).returncode == 0
    assert (grown.out / "tokenizer" / "tokenizer.json").read_bytes() == before
    assert cppmill("verify", grown.out).returncode == 0


@pytest.mark.parametrize(
    ("options", "both"),
    [
        (("--vocab-size", "8192"), ("--vocab-size 8192:", "was built with 12288; pass --vocab-size 12288, or")),
        (("--profile", "demo"), ("--profile demo:", "was built with hybrid-64k; pass --profile hybrid-64k, or")),
        (("--hf-template", "bos"), ("--hf-template bos:", "was built with none; leave it out, or")),
        (("--set", "build.min_hits=3"), ("--min-hits 3:", "was built with 10; pass --min-hits 10, or")),
        (
            ("--unit-pattern", "cpp-lines-1", "--superwords-after", "0.9"),
            ("--superwords-after 0.9:", "was built with none; leave it out, or"),
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan", "build"])
def test_an_option_that_disagrees_is_refused_with_both_values(run, cppmill, tmp_path, command, options, both):
    out = run.out
    if command != "plan":
        out = shutil.copytree(run.out, tmp_path / "out", copy_function=shutil.copy2)
    before = type(run)(run.sources, out).tree()
    done = cppmill(command, run.sources, "--out", out, "--vocab-size", 12288, *options, check=False)
    assert done.returncode == 2
    assert all(text in done.stderr for text in (*both, "--rebuild-tokenizer"))
    assert type(run)(run.sources, out).tree() == before


def test_a_forgotten_option_is_refused_where_the_cache_was_left_behind(copied_run, cppmill):
    shutil.rmtree(copied_run.out / ".cache")
    done = cppmill("run", copied_run.sources, "--out", copied_run.out, check=False)
    assert done.returncode == 2
    assert "--vocab-size 65536: the tokenizer in" in done.stderr


def test_a_tokenizer_that_was_given_once_stays(run, other_tokenizer, cppmill, tmp_path):
    out = tmp_path / "out"
    cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", other_tokenizer)
    done = cppmill("run", run.sources, "--out", out, check=False)
    assert done.returncode == 2
    assert f"--vocab-size 65536: the tokenizer in {out} was built with 8192; " in done.stderr
    assert f"--tokenizer {out}/tokenizer" in done.stderr
    cppmill("run", run.sources, "--out", out, "--vocab-size", 8192)
    assert (out / "tokenizer/manifest.json").read_bytes() == (other_tokenizer / "manifest.json").read_bytes()
    assert not (out / "counts").exists()
    assert "kept" in cppmill("build", "--out", out, "--vocab-size", 8192).stderr


def test_a_build_that_was_killed_before_its_manifest_is_repeated(copied_run, cppmill):
    before = copied_run.tree()
    (copied_run.out / "receipt.json").unlink()
    (copied_run.out / "tokenizer/manifest.json").unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


@pytest.mark.parametrize("has_cache", [True, False])
def test_a_tokenizer_that_lost_its_manifest_in_an_unfinished_run_is_not_built_anew(grown, cppmill, has_cache):
    (grown.out / "receipt.json").unlink(), (grown.out / "tokenizer/manifest.json").unlink()
    if not has_cache:
        shutil.rmtree(grown.out / ".cache")
    for command in (grown.command, [*grown.command, "--vocab-size", 9000]):
        done = cppmill(*command, check=False)
        assert done.returncode == 1
        assert "tokenizer/manifest.json: missing, and the receipt of the build names it" in done.stderr
    cppmill(*grown.command, "--rebuild-tokenizer")
    assert verify(str(grown.out)) == []


@pytest.mark.parametrize("stages", [False, True], ids=["run", "stage by stage"])
def test_a_tokenizer_that_was_lost_with_the_receipt_of_the_run_is_not_built_anew_of_other_sources(
    grown, cppmill, stages
):
    shutil.rmtree(grown.out / "tokenizer"), (grown.out / "receipt.json").unlink()
    before = (grown.out / ".cache/stages/build.json").read_bytes()
    options = grown.command[2:]
    if stages:
        cppmill("ingest", *grown.command[1:])
    for command in [("scan", *options)] if stages else [grown.command, grown.command]:
        done = cppmill(*command, check=False)
        assert done.returncode == 1
        assert "tokenizer/manifest.json: missing, and what is remembered of the build names it" in done.stderr
    assert (grown.out / ".cache/stages/build.json").read_bytes() == before
    cppmill(*grown.command, "--rebuild-tokenizer")
    assert verify(str(grown.out)) == []


def test_a_tokenizer_that_was_lost_with_the_receipt_of_the_run_is_built_again_of_the_same_sources(copied_run, cppmill):
    before = copied_run.tree()
    shutil.rmtree(copied_run.out / "tokenizer"), (copied_run.out / "receipt.json").unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_the_tokenizer_of_out_that_is_given_is_not_written(grown, cppmill):
    cppmill(*grown.command)
    folder = grown.out / "tokenizer"
    before = {path.name: path.stat() for path in folder.iterdir() if not path.name.startswith("_unit-")}
    cppmill(*grown.command, "--tokenizer", folder)
    assert {path.name: path.stat() for path in folder.iterdir()} == before
    assert verify(str(grown.out)) == []


@pytest.mark.parametrize("copies", range(1, 9, 2))
def test_a_given_tokenizer_that_is_replaced_while_it_is_copied_is_refused(
    run, other_tokenizer, cppmill, tmp_path, monkeypatch, copies
):
    folder, out = shutil.copytree(run.out / "tokenizer", tmp_path / "given"), tmp_path / "out"
    copy, calls = shutil.copyfile, iter(range(1, copies))

    def replace_before(*arguments, **options):
        if next(calls, None) is None and folder.exists():
            shutil.rmtree(folder)
            monkeypatch.undo()
            shutil.copytree(other_tokenizer, folder)
        return copy(*arguments, **options)

    monkeypatch.setattr(shutil, "copyfile", replace_before)
    done = cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", folder, check=False)
    assert done.returncode == 2 or verify(str(out)) == []
    cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", folder)
    assert (out / "tokenizer/manifest.json").read_bytes() == (other_tokenizer / "manifest.json").read_bytes()


def test_decisions_of_a_given_tokenizer_that_rot_are_refused(run, cppmill, tmp_path):
    folder, out = shutil.copytree(run.out / "tokenizer", tmp_path / "given"), tmp_path / "out"
    path, whole = folder / "decisions.parquet", (folder / "decisions.parquet").read_bytes()
    for place in range(4, len(whole), len(whole) // 12):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        done = cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", folder, check=False)
        assert done.returncode == 2 or verify(str(out)) == []
        if done.returncode:
            assert f"--tokenizer {folder}: {path}: " in done.stderr
            assert not (out / "tokenizer").exists()
        shutil.rmtree(out, ignore_errors=True)


def _with_metadata(table):
    return table.cast(pa.schema([field.with_metadata({"a": "b"}) for field in table.schema]))


@pytest.mark.parametrize(
    "change",
    [
        _with_metadata,
        lambda table: table.replace_schema_metadata({"mine": "yes"}),
        lambda table: table.drop_columns(["rule"]),
        lambda table: table.select(table.column_names[::-1]),
        lambda table: table.cast(pa.schema([field.with_nullable(True) for field in table.schema])),
    ],
    ids=["metadata of columns", "metadata", "a column less", "another order", "nulls"],
)
def test_decisions_of_a_given_tokenizer_that_verify_refuses_are_refused(run, cppmill, tmp_path, change):
    folder, out = shutil.copytree(run.out / "tokenizer", tmp_path / "given"), tmp_path / "out"
    path = folder / "decisions.parquet"
    pq.write_table(change(pq.read_table(path)), path, compression="zstd")
    done = cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", folder, check=False)
    assert done.returncode == 2
    assert f"--tokenizer {folder}: {path}: damaged (" in done.stderr
    assert not (out / "tokenizer").exists()


@pytest.mark.parametrize("left", ["_unit-*.json", "vocab.tsv", "decisions.parquet"])
def test_a_tokenizer_of_ours_without_its_manifest_is_not_that_of_another_program(run, cppmill, tmp_path, left):
    folder = shutil.copytree(run.out / "tokenizer", tmp_path / "given")
    (folder / "manifest.json").unlink()
    [name] = [path.name for path in folder.glob(left)]
    for path in folder.iterdir():
        if path.name not in (name, "tokenizer.json"):
            path.unlink()
    commands = (
        ("run", run.sources, "--out", tmp_path / "out", "--tokenizer", folder),
        ("adopt", folder, "--out", tmp_path / "adopted"),
        ("vocab", "map", run.out / "tokenizer", folder, "--out", tmp_path / "map.parquet"),
    )
    for command in commands:
        done = cppmill(*command, check=False)
        assert done.returncode == 2
        assert f"manifest.json is missing, and {name} says that cppmill built it" in done.stderr
    cppmill("adopt", folder / "tokenizer.json", "--out", tmp_path / "adopted")


def test_stage_by_stage_ends_with_the_receipt_of_a_run(grown, cppmill, tmp_path):
    other = type(grown)(grown.sources, shutil.copytree(grown.out, tmp_path / "other", copy_function=shutil.copy2))
    cppmill(*grown.command)
    for stage in ("ingest", "scan", "build", "tokenize", "validate"):
        cppmill(stage, *other.command[1:])
    assert other.tree() == grown.tree()


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.tsv", "findings.md"])
def test_a_damaged_tokenizer_is_not_kept(grown, cppmill, name):
    path = grown.out / "tokenizer" / name
    path.write_bytes(path.read_bytes() + b"\n")
    done = cppmill(*grown.command, check=False)
    assert done.returncode == 1
    assert f"{path}: missing or damaged" in done.stderr
    cppmill(*grown.command, "--rebuild-tokenizer")
    assert cppmill("verify", grown.out).returncode == 0


def test_no_other_tokenizer_is_built_in_the_place_of_one_that_lost_its_manifest(grown, run, cppmill, tmp_path):
    given = ["run", run.sources / "numpy", "--out", tmp_path / "given"]
    cppmill(*given, "--tokenizer", run.out / "tokenizer")
    for out, command in ((grown.out, grown.command), (tmp_path / "given", given)):
        (out / "tokenizer/manifest.json").unlink()
        done = cppmill(*command, check=False)
        assert done.returncode == 1
        assert "tokenizer/manifest.json: missing, and receipt.json names it" in done.stderr.replace("\n", "")


@pytest.mark.parametrize("has_record", [True, False])
@pytest.mark.parametrize("has_cache", [True, False])
def test_a_tokenizer_that_was_put_in_the_place_of_the_built_one_is_not_kept(
    grown, other_tokenizer, cppmill, has_record, has_cache
):
    shutil.rmtree(grown.out / "tokenizer")
    shutil.copytree(other_tokenizer, grown.out / "tokenizer")
    if not has_cache:
        shutil.rmtree(grown.out / ".cache")
    if not has_record:
        (grown.out / "receipt.json").unlink()
    before = grown.tree()
    for size in (12288, 8192):
        done = cppmill("run", grown.sources, "--out", grown.out, "--vocab-size", size, check=False)
        assert done.returncode in (1, 2)
        assert "--rebuild-tokenizer" in done.stderr
    written = {
        path: data for path, data in grown.tree().items() if not path.startswith(("documents/", ".units/ingest"))
    }
    assert {path for path in before if path.startswith(("tokens/", "counts/", "tokenizer/"))} <= written.keys()
    assert all(data == before[path] for path, data in written.items() if path.startswith(("tokens/", "counts/")))
    cppmill("run", grown.sources, "--out", grown.out, "--tokenizer", other_tokenizer)
    assert verify(str(grown.out)) == []


@pytest.mark.parametrize("command", ["tokenize", "validate"])
def test_a_stage_alone_uses_no_tokenizer_but_the_one_of_the_record(copied_run, other_tokenizer, cppmill, command):
    shutil.rmtree(copied_run.out / "tokenizer")
    shutil.copytree(other_tokenizer, copied_run.out / "tokenizer")
    before = copied_run.tree()
    done = cppmill(command, *copied_run.command[1:], check=False)
    assert done.returncode == 1
    assert re.search(r"tokenizer/manifest.json: its SHA-256 is \w+, receipt.json says ", done.stderr.replace("\n", ""))
    assert copied_run.tree() == before


@pytest.mark.parametrize("command", ["run", "stages"])
@pytest.mark.parametrize("case", ["fewer", "foreign"])
@pytest.mark.parametrize("has_record", [True, False])
def test_counts_of_a_kept_tokenizer_do_not_depend_on_what_is_remembered(
    grown, other_tokenizer, cppmill, command, case, has_record
):
    index = grown.out / ".cache/stages/scan.json"
    if case == "fewer":
        remembered = json.loads(index.read_bytes())
        del remembered["digest"], remembered["units"][0]
        index.write_text(json.dumps(with_digest(remembered)))
    else:
        shutil.copyfile(other_tokenizer.parent / ".cache/stages/scan.json", index)
    if not has_record:
        (grown.out / "receipt.json").unlink()
    for stage in ("run",) if command == "run" else ("ingest", "scan", "build", "tokenize", "validate"):
        cppmill(stage, *grown.command[1:])
    assert verify(str(grown.out)) == []
    assert grown.receipt["tokenizer"]["kept"]


@pytest.fixture
def twice_built(grown, cppmill, tmp_path):
    """A run that keeps a second tokenizer, built from other sources, and a copy of it with the first one."""
    shutil.copytree(grown.out, tmp_path / "old", copy_function=shutil.copy2)
    cppmill(*grown.command, "--rebuild-tokenizer")
    (grown.sources / "arrow" / "frobnicate.h").unlink()
    cppmill(*grown.command)
    assert grown.receipt["tokenizer"]["kept"]
    return grown


@pytest.mark.parametrize("has_record", [True, False])
@pytest.mark.parametrize("copied", [".cache/stages", ".cache/stages/build.json", ".cache/stages/scan.json"])
def test_what_is_remembered_of_an_earlier_tokenizer_does_not_bring_it_back(
    twice_built, cppmill, tmp_path, copied, has_record
):
    before, old, new = twice_built.tree(), tmp_path / "old" / copied, twice_built.out / copied
    if old.is_dir():
        shutil.rmtree(new)
        shutil.copytree(old, new)
    else:
        shutil.copyfile(old, new)
    if not has_record:
        (twice_built.out / "receipt.json").unlink()
    cppmill(*twice_built.command)
    assert twice_built.tree() == before


def test_a_record_of_an_earlier_tokenizer_does_not_bring_it_back(twice_built, cppmill, tmp_path):
    shutil.copyfile(tmp_path / "old/receipt.json", twice_built.out / "receipt.json")
    before = twice_built.tree()
    done = cppmill(*twice_built.command, check=False)
    assert done.returncode == 1
    assert "tokenizer/manifest.json: its SHA-256 is" in done.stderr.replace("\n", "")
    assert twice_built.tree() == before


def test_a_manifest_that_is_none_is_replaced_by_a_rebuild(grown, cppmill):
    (grown.out / "tokenizer/manifest.json").write_text("{}")
    done = cppmill(*grown.command, check=False)
    assert (done.returncode, "build another with --rebuild-tokenizer" in done.stderr) == (1, True)
    cppmill(*grown.command, "--rebuild-tokenizer")
    assert verify(str(grown.out)) == []


def test_a_scan_alone_for_a_rebuild_needs_no_receipt_of_the_build(grown, cppmill):
    (grown.out / "receipt.json").unlink()
    (path,) = grown.out.glob("tokenizer/_unit-*.json")
    path.write_bytes(path.read_bytes().replace(b"num_bytes", b"num_bytez"))
    assert "--rebuild-tokenizer" in cppmill("scan", *grown.command[1:], check=False).stderr
    for stage in ("ingest", "scan", "build", "tokenize", "validate"):
        cppmill(stage, *grown.command[1:], "--rebuild-tokenizer")
    assert verify(str(grown.out)) == []


@pytest.mark.parametrize("name", ["manifest.json", "tokenizer.json"])
def test_a_build_alone_copies_a_given_tokenizer(run, other_tokenizer, cppmill, tmp_path, name):
    command = [run.sources / "numpy", "--out", tmp_path / "out", "--tokenizer", other_tokenizer]
    cppmill("run", *command)
    before = type(run)(run.sources, tmp_path / "out").tree()
    (tmp_path / "out/tokenizer" / name).unlink()
    for stage in ("ingest", "scan", "build", "tokenize", "validate"):
        if stage != "scan":
            cppmill(stage, *command)
    assert type(run)(run.sources, tmp_path / "out").tree() == before


@pytest.mark.parametrize("options", [["--drop-secrets"], ["--max-line-bytes", "100"], ["--set", "build.min_hits=3"]])
def test_validate_alone_takes_the_options_of_the_record_where_the_cache_is_gone(copied_run, cppmill, options):
    shutil.rmtree(copied_run.out / ".cache")
    before = copied_run.tree()
    done = cppmill("validate", *copied_run.command[1:], *options, check=False)
    assert done.returncode == 2
    assert "was made with" in done.stderr
    assert copied_run.tree() == before
    cppmill("validate", *copied_run.command[1:])
    assert copied_run.tree() == before


def test_a_build_alone_refuses_counts_of_other_options(run, cppmill, tmp_path):
    command = [run.sources / "numpy", "--out", tmp_path / "out", "--profile", "demo"]
    cppmill("ingest", *command)
    cppmill("scan", *command, "--pattern", "cpp-words-2")
    done = cppmill("build", *command, check=False)
    assert done.returncode == 2
    assert 'scan.pattern = "cpp-words-1"' in done.stderr
    cppmill("build", *command, "--pattern", "cpp-words-2")


def test_a_scan_that_no_build_followed_does_not_say_what_the_tokenizer_was_built_with(copied_run, cppmill):
    before = copied_run.tree()
    cppmill("scan", *copied_run.command[1:], "--pattern", "cpp-words-2", "--rebuild-tokenizer")
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_validate_alone_compares_the_given_tokenizer_with_the_one_that_is_there(
    run, other_tokenizer, cppmill, tmp_path
):
    command = [run.sources / "numpy", "--out", tmp_path / "out", "--tokenizer", other_tokenizer]
    cppmill("run", *command)
    made = type(run)(run.sources, tmp_path / "out")
    before, path = made.tree(), tmp_path / "out/tokenizer/findings.md"
    done = cppmill("validate", *command[:-1], run.out / "tokenizer", check=False)
    assert (done.returncode, "not what is in" in done.stderr) == (2, True)
    path.write_text("changed")
    changed = made.tree()
    assert cppmill("validate", *command, check=False).returncode == 2
    assert made.tree() == changed
    cppmill("tokenize", *command)
    cppmill("validate", *command)
    assert made.tree() == before
