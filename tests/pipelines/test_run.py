"""A run is true, repeats itself to the byte, and does again only what changed."""

import json
import random
import shutil
import subprocess
import time

import pytest

STAGES = ("ingest", "scan", "build", "tokenize", "validate")


def test_the_independent_checker_finds_the_run_true(run, checker):
    assert not checker(run.out, "--sources", run.sources)


def test_a_second_run_does_nothing(copied_run, cppmill):
    before = copied_run.tree()
    done = cppmill(*copied_run.command, "--json")
    ran = copied_run.stages(done)
    assert [ran[stage] for stage in STAGES if stage != "build"] == [0, 0, 0, 0]
    assert copied_run.tree() == before


@pytest.mark.parametrize(
    "options",
    [
        ("--unit-bytes", 1 << 16),
        ("--unit-bytes", 16 << 20),
        ("--unit-bytes", 64 << 20, "--threads", 1),
        ("--", "--direct_running_mode=multi_processing", "--direct_num_workers=2"),
    ],
    ids=["64 KiB units", "16 MiB units", "64 MiB units, one thread", "two processes"],
)
def test_the_digests_do_not_depend_on_how_a_run_is_carried_out(run, cppmill, tmp_path, options):
    other = type(run)(run.sources, tmp_path / "out")
    cppmill(*other.command, *options)
    assert other.digests() == run.digests()


@pytest.mark.parametrize("change", ["add", "change", "remove"])
def test_one_file_redoes_a_unit_or_two(copied_run, cppmill, checker, change):
    tokenizer = shutil.copytree(copied_run.out / "tokenizer", copied_run.out.parent / "tokenizer")
    kept = [*copied_run.command, "--tokenizer", tokenizer, "--json"]
    units = len(copied_run.receipt["dataset"]["shards"])
    assert units >= 4, "too few units for the test to mean anything"
    cppmill(*kept)
    path = sorted((copied_run.sources / "arrow").rglob("*.h"))[
        len(list((copied_run.sources / "arrow").rglob("*.h"))) // 2
    ]
    if change == "add":
        path.with_name(path.stem + "_new.h").write_bytes(b"int added_by_the_test;\n")
    elif change == "change":
        path.write_bytes(path.read_bytes() + b"// changed by the test\n")
    else:
        path.unlink()
    ran = copied_run.stages(cppmill(*kept))
    assert 1 <= ran["ingest"] <= 2
    assert 1 <= ran["tokenize"] <= 2
    assert not checker(copied_run.out, "--sources", copied_run.sources)


@pytest.mark.parametrize("unit_bytes", [1 << 18])
def test_a_run_killed_in_every_stage_goes_on_to_the_same_end(run, cppmill, command_line, tmp_path, unit_bytes):
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    again = type(run)(run.sources, tmp_path / "out")
    command = [*again.command, "--unit-bytes", unit_bytes, "--json"]
    for stage in STAGES:
        kill_in_stage([*command_line, *map(str, command)], stage, draw.uniform(0.0, 1.0))
        assert not (again.out / "receipt.json").exists()
    cppmill(*command)
    assert again.digests() == run.digests()
    assert cppmill("verify", again.out).returncode == 0


def kill_in_stage(command, stage, seconds):
    """Start a run and kill it so many seconds after a stage began; fail if the run ended before."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "stage_started" and event["stage"] == stage:
                time.sleep(seconds)
                break
        process.kill()
    assert process.returncode == -9, f"the run ended by itself with {process.returncode}"
