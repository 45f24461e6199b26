"""A run is correct, repeats itself to the byte, and does again only what changed."""

import json
import random
import shutil
import signal
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.signing import mend_tokenizer, rewrite, sign_again

FOLDERS = {"ingest": "documents", "scan": "counts", "build": "tokenizer", "tokenize": "tokens", "validate": "proofs"}
STAGES = tuple(FOLDERS)


def test_the_independent_checker_finds_nothing_wrong_with_the_run(run, checker):
    assert not checker(run.out, "--sources", run.sources)


def test_a_second_run_does_nothing(copied_run, cppmill):
    before = copied_run.tree()
    done = cppmill(*copied_run.command, "--json")
    ran = copied_run.stages(done)
    assert [ran[stage] for stage in STAGES if stage != "build"] == [0, 0, 0, 0]
    assert copied_run.tree() == before


def test_the_build_prints_its_findings_and_the_run_a_few_lines_of_them(copied_run, cppmill):
    findings = (copied_run.out / "tokenizer" / "findings.md").read_text()
    built = cppmill("build", *copied_run.command[2:])
    assert built.stderr.endswith(findings)
    shutil.rmtree(copied_run.out / "tokenizer")
    again = cppmill(*copied_run.command)
    said = [line.removeprefix("build: ") for line in again.stderr.splitlines() if line.startswith("build: ")]
    assert "findings.md" in said[-1]
    assert said[-2].startswith("kept ")
    assert f"- K{said[-2][1:]}" in findings.splitlines()
    assert (copied_run.out / "tokenizer" / "findings.md").read_text() == findings


def check_the_first_superword(out, command, cppmill):
    """Check that another first superword is found, though a run took it, and put the right one back."""
    for step in (1, -1):
        change = lambda manifest, step=step: manifest["superwords"].update(  # noqa: E731
            first_merge=manifest["superwords"]["first_merge"] + step
        )
        rewrite(out / "tokenizer" / "manifest.json", change)
        mend_tokenizer(out)
        sign_again(out)
        cppmill(*command[:-1])
        said = cppmill("verify", out, check=False).stdout
        assert ("tokens were learned in lines, and by the options of the receipt" in said) == (step == 1)


def test_superwords_come_and_go_with_their_profile(copied_run, cppmill, checker):
    before = copied_run.tree()
    command = [
        *copied_run.command,
        "--profile",
        "hybrid-64k-superwords",
        "--vocab-size",
        "13312",
        "--rebuild-tokenizer",
    ]
    cppmill(*command)
    assert not checker(copied_run.out)
    cppmill("verify", copied_run.out)
    manifest = json.loads((copied_run.out / "tokenizer" / "manifest.json").read_bytes())
    assert manifest["pattern"] == "cpp-lines-1"
    units = [pq.read_table(path) for path in sorted((copied_run.out / "counts" / "units").iterdir())]
    rows = pa.concat_tables(units).to_pylist()
    assert sum(len(row["word"]) * row["count"] for row in rows) == copied_run.receipt["corpus"]["bytes"]
    assert copied_run.receipt["dataset"]["tokens"] < json.loads(before["receipt.json"])["dataset"]["tokens"]
    ran = copied_run.stages(cppmill(*command, "--json"))
    assert [ran[stage] for stage in STAGES if stage != "build"] == [0, 0, 0, 0]
    made = copied_run.tree()
    shutil.rmtree(copied_run.out / ".cache"), (copied_run.out / "receipt.json").unlink()
    cppmill(*command[:-1])  # what the tokenizer was built with is known from its manifest alone
    assert copied_run.tree() == made
    check_the_first_superword(copied_run.out, command, cppmill)
    plain = cppmill("validate", *copied_run.command[2:], check=False)
    assert plain.returncode == 2
    assert "scan.unit_pattern = null: " in plain.stderr and 'was made with "cpp-lines-1"' in plain.stderr
    cppmill(*copied_run.command, "--rebuild-tokenizer")
    assert copied_run.tree() == before


@pytest.mark.parametrize(
    "options",
    [
        ("--unit-bytes", 64 << 20, "--threads", 1),
        ("--unit-bytes", 1 << 16, "--", "--direct_running_mode=multi_processing", "--direct_num_workers=2"),
    ],
    ids=["64 MiB units, one thread", "64 KiB units, two processes"],
)
def test_the_digests_do_not_depend_on_how_a_run_is_carried_out(run, cppmill, forked_workers, tmp_path, options):
    other = type(run)(run.sources, tmp_path / "out")
    cppmill(*other.command, *options)
    assert other.digests() == run.digests()


def test_one_file_redoes_a_unit_or_two(copied_run, cppmill, checker):
    tokenizer = shutil.copytree(copied_run.out / "tokenizer", copied_run.out.parent / "tokenizer")
    kept = [*copied_run.command, "--tokenizer", tokenizer, "--json"]
    units = len(copied_run.receipt["dataset"]["shards"])
    assert units >= 4, "too few units for the test to mean anything"
    cppmill(*kept)
    headers = sorted((copied_run.sources / "arrow").rglob("*.h"))
    path = headers[len(headers) // 2]

    def add():
        path.with_name(path.stem + "_new.h").write_bytes(b"int added_by_the_test;\n")

    def change():
        path.write_bytes(path.read_bytes() + b"// changed by the test\n")

    for act in (add, change, path.unlink):
        act()
        ran = copied_run.stages(cppmill(*kept))
        assert 1 <= ran["ingest"] <= 2, act
        assert 1 <= ran["tokenize"] <= 2, act
        assert not checker(copied_run.out, "--sources", copied_run.sources)


@pytest.mark.parametrize("unit_bytes", [1 << 18])
def test_a_run_killed_in_every_stage_ends_with_the_same_bytes(run, cppmill, processes, tmp_path, unit_bytes):
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    again = type(run)(run.sources, tmp_path / "out")
    command = [*again.command, "--unit-bytes", unit_bytes, "--json"]
    for stage, folder in FOLDERS.items():
        seconds = draw.uniform(0.0, 0.3)
        while not is_killed_in(processes, command, stage, seconds):
            seconds /= 4  # the run had ended
            shutil.rmtree(again.out / folder)
    cppmill(*command)
    assert again.digests() == run.digests()
    assert cppmill("verify", again.out).returncode == 0


def is_killed_in(processes, command, stage, seconds):
    """Start a run and kill it so many seconds after a stage began; return whether it had not ended before."""
    with processes.command(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "stage_started" and event["stage"] == stage:
                time.sleep(seconds)
                break
        process.kill()
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode != 0


def planned(cppmill, run, *options):
    """The lines of `plan --json` for the command of a run."""
    done = cppmill("plan", *run.command[1:], "--json", *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_plan_of_a_finished_run_skips_everything(run, cppmill):
    lines = planned(cppmill, run)
    assert {line["action"] for line in lines} == {"skip"}
    assert {line["stage"] for line in lines} == set(STAGES)
    assert all(line.keys() == {"stage", "unit", "action", "reason"} for line in lines)


def test_the_plan_names_the_unit_whose_file_is_gone_and_writes_nothing(copied_run, cppmill):
    cppmill(*copied_run.command)  # the sources are in another place now: they are read, and nothing else is done
    path = sorted((copied_run.out / "tokens").glob("part-*.parquet"))[0]
    path.unlink()
    before = copied_run.tree()
    to_run = [line for line in planned(cppmill, copied_run) if line["action"] == "run"]
    assert [line["stage"] for line in to_run] == ["tokenize", "validate"]
    assert to_run[0]["reason"].startswith("a file of it is missing or damaged")
    assert copied_run.tree() == before


def test_a_damaged_shard_is_made_again(copied_run, cppmill):
    before = copied_run.tree()
    path = sorted((copied_run.out / "tokens").glob("part-*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:-1])
    ran = copied_run.stages(cppmill(*copied_run.command, "--json"))
    assert ran["tokenize"] == 1
    assert copied_run.tree() == before


def test_two_runs_cannot_write_to_one_folder(run, cppmill, processes, tmp_path):
    again = type(run)(run.sources, tmp_path / "out")
    command = [*again.command, "--tokenizer", run.out / "tokenizer", "--json"]
    with processes.command(*command, stdout=subprocess.PIPE) as first:
        first.stdout.readline()
        first.send_signal(signal.SIGSTOP)
        second = cppmill(*again.command, check=False)
        first.send_signal(signal.SIGCONT)
        first.communicate()
    assert (first.returncode, second.returncode) == (0, 1)
    assert "another run is writing here" in second.stderr


def test_a_stopped_run_says_how_to_continue_and_continues(run, cppmill, processes, tmp_path):
    again = type(run)(run.sources, tmp_path / "out")
    command = [*again.command, "--unit-bytes", 1 << 16, "--json"]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with processes.command(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "stage_started" and event["stage"] == "scan":
                    break
            process.send_signal(number)
            _, said = process.communicate()
        assert process.returncode == code
        assert "run the same command again to continue" in said
    cppmill(*again.command)
    assert again.digests() == run.digests()


def test_a_source_that_is_named_twice_is_read_twice_and_nothing_else(run, processes, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.cpp").write_text("int x;\n")
    words = ("run", str(source), str(source), "--tokenizer", str(run.out / "tokenizer"), "--out", str(tmp_path / "out"))
    process = processes.command(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, err = process.communicate(120)
    assert (process.returncode, "Traceback" in err) == (0, False)
    assert "duplicate 1 document" in err
