"""Pushing a run to the Hub: all of it, once, whatever fails on the way, and nothing that does not verify."""

import json
import shutil
import signal
import threading
from hashlib import sha256
from itertools import count

import pytest

from pipelines.publish import hub, provenance
from tests.hub_server import COMMAND_LINE
from transforms.records.checks.published import published_files
from transforms.records.receipts import RECEIPT

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # huggingface_hub's own

NAME = "acme/headers"


def shards(receipt):
    names = {shard["path"]: shard["sha256"] for shard in receipt["dataset"]["shards"]}
    return names | {name: digest for name, digest in receipt["files"].items() if name.startswith("documents/part-")}


def test_a_pushed_run_has_what_receipt_card_and_croissant_name_and_a_second_push_sends_nothing(
    run, hub_server, cppmill
):
    said = cppmill("push", NAME, run.out, "--private", "--revision", "v1").stdout
    assert f"{hub_server.url}/datasets/{NAME}/tree/v1: " in said
    assert hub_server.visibility[NAME] == "private"
    assert list(hub_server.repositories[NAME]["main"]) == [".gitattributes"]
    files = hub_server.repositories[NAME]["v1"]
    expected = shards(run.receipt)
    assert {name: sha256(files[name]).hexdigest() for name in expected} == expected
    assert files[RECEIPT] == (run.out / RECEIPT).read_bytes()
    described = {
        item["@id"]: item["sha256"] for item in json.loads(files["croissant.json"])["distribution"] if "sha256" in item
    }
    assert {name: sha256(files[name]).hexdigest() for name in described} == described
    assert "path: tokens/part-*.parquet" in files["README.md"].decode()
    large = [sha256(data).hexdigest() for name, data in files.items() if name.endswith(".parquet")]
    assert sorted(hub_server.uploads()) == sorted(large)
    hub_server.requests.clear()
    assert ", 0 of them new or changed," in cppmill("push", NAME, run.out, "--revision", "v1").stdout
    assert not [path for method, path in hub_server.requests if method == "PUT" or "/commit/" in path]


def test_a_push_goes_on_after_errors_of_the_hub_and_after_a_kill_and_sends_no_shard_twice(
    run, hub_server, cppmill, processes, monkeypatch
):
    monkeypatch.setattr(hub, "COMMIT_FILES", 2)
    begun, hold = threading.Event(), threading.Event()

    def block_the_third(method, path):
        if method == "PUT" and len(hub_server.uploads()) == 3:
            begun.set()
            hold.wait(60)
            return 503
        return None

    hub_server.failures = block_the_third
    with processes.start(COMMAND_LINE, ["push", NAME, run.out]) as killed:
        assert begun.wait(60)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    hold.set()
    kept = set(hub_server.objects)
    assert RECEIPT not in hub_server.repositories[NAME]["main"], "a receipt comes with all that it names"
    hub_server.requests.clear()
    broken = iter([503, None, 500, None])
    hub_server.failures = lambda method, path: next(broken, None) if method == "PUT" or "/commit/" in path else None
    cppmill("push", NAME, run.out)
    assert not kept & set(hub_server.uploads())
    files = hub_server.repositories[NAME]["main"]
    assert {name: sha256(files[name]).hexdigest() for name in shards(run.receipt)} == shards(run.receipt)


def test_the_files_of_an_attempt_that_failed_half_way_are_counted_too(run, hub_server, cppmill, monkeypatch):
    monkeypatch.setattr(hub, "COMMIT_FILES", 2)
    monkeypatch.setattr(hub, "PAUSE_SECONDS", 0)
    commits = iter([None, 500])
    hub_server.failures = lambda method, path: next(commits, None) if "/commit/" in path else None
    said = cppmill("push", NAME, run.out).stdout
    pushed = len(hub_server.repositories[NAME]["main"].keys() - {".gitattributes"})
    assert f"{pushed} files, {pushed} of them new or changed," in said


def test_a_later_push_deletes_what_is_old_and_leaves_what_is_of_others(run, hub_server, cppmill):
    old = {"tokens/part-old.parquet": b"", "LICENSE": b"", "tokenizer/old.json": b"", "receipt.json.sig": b""}
    hub_server.repositories[NAME]["main"] = dict(old)
    cppmill("push", NAME, run.out)
    assert set(old) & hub_server.repositories[NAME]["main"].keys() == {"LICENSE"}


def moves_at(numbers, hub_server, changes):
    """Have another push change the branch right before the commits of these numbers, from 1."""
    commits = iter(range(1, 100))

    def change(method, path):
        if "/commit/" in path and next(commits) in numbers:
            hub_server.repositories[NAME]["main"] = {**changes, f"LICENSE-{len(hub_server.requests)}": b""}

    hub_server.failures = change


def test_two_pushes_at_once_do_not_mix(run, hub_server, cppmill, monkeypatch):
    monkeypatch.setattr(hub, "PAUSE_SECONDS", 0)
    other = {"tokens/part-other.parquet": b"", RECEIPT: b"{}"}
    moves_at({2}, hub_server, other)  # which deletes the shards of the first commit, too
    done = cppmill("push", NAME, run.out)
    assert "main changed during the push, perhaps by another one (" in done.stderr
    files = hub_server.repositories[NAME]["main"]
    assert {name: sha256(files[name]).hexdigest() for name in shards(run.receipt)} == shards(run.receipt)
    assert files[RECEIPT] == (run.out / RECEIPT).read_bytes()
    assert "tokens/part-other.parquet" not in files


def test_what_another_push_deletes_between_two_commits_is_sent_again(run, hub_server, cppmill, monkeypatch):
    monkeypatch.setattr(hub, "COMMIT_FILES", 1)
    moves_at({2}, hub_server, {})
    cppmill("push", NAME, run.out)
    files = hub_server.repositories[NAME]["main"]
    assert {name: sha256(files[name]).hexdigest() for name in shards(run.receipt)} == shards(run.receipt)


def test_a_branch_that_goes_on_moving_ends_a_push(run, hub_server, cppmill, monkeypatch):
    monkeypatch.setattr(hub, "PAUSE_SECONDS", 0)
    other = {RECEIPT: b"{}"}
    moves_at(range(1, 100), hub_server, other)
    done = cppmill("push", NAME, run.out, check=False)
    assert done.returncode == 1
    assert "push again, which sends only what is missing" in done.stderr.splitlines()[-1]
    assert hub_server.repositories[NAME]["main"][RECEIPT] == other[RECEIPT]


@pytest.mark.parametrize(("module", "name"), [(hub, "write_provenance"), (provenance, "count_licenses")])
def test_a_push_does_not_mix_two_runs_if_one_ends_meanwhile(copied_run, hub_server, cppmill, monkeypatch, module, name):
    work = getattr(module, name)

    def run_meanwhile(*arguments, **options):
        next(copied_run.sources.rglob("*.h")).write_bytes(b"int meanwhile();\n")
        cppmill(*copied_run.command)
        return work(*arguments, **options)

    monkeypatch.setattr(module, name, run_meanwhile)
    done = cppmill("push", NAME, copied_run.out, check=False)
    assert done.returncode == 1
    assert "receipt.json: a run replaced it meanwhile; try again" in done.stderr
    assert not hub_server.repositories.get(NAME)


@pytest.mark.parametrize(("change", "step"), [("a run", 2), ("tokens go", 5)])
def test_what_changes_while_it_is_sent_is_not_mixed(
    copied_run, hub_server, cppmill, monkeypatch, tmp_path, change, step
):
    monkeypatch.setattr("pipelines.versions.verify.verify", lambda *_, **__: [])
    monkeypatch.setattr(hub, "PAUSE_SECONDS", 0)
    before, out = shutil.copytree(copied_run.out, tmp_path / "before"), copied_run.out
    next(copied_run.sources.rglob("*.h")).write_bytes(b"int meanwhile();\n")
    cppmill(*copied_run.command)
    after = out.rename(tmp_path / "after")
    whole = [published(folder) for folder in (before, after)]
    refused = 0
    for number in count(1, step):
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(before, out)
        hub_server.repositories.clear(), hub_server.objects.clear(), hub_server.requests.clear()

        def act(method, path, number=number):
            if len(hub_server.requests) == number:
                shutil.rmtree(out / "tokens")
                if change == "a run":
                    shutil.copytree(after, out, dirs_exist_ok=True)

        hub_server.failures = act
        done = cppmill("push", NAME, out, check=False)
        if len(hub_server.requests) < number:
            break
        there = hub_server.repositories[NAME].get("main", {})
        said = "a run replaced it meanwhile" if change == "a run" else "it is not there any more"
        refused += done.returncode
        assert done.returncode == 0 or said in done.stderr, (number, done.stderr)
        sent = {name: data for name, data in there.items() if name in whole[0] | whole[1]}
        assert RECEIPT not in there or sent in whole, number
        assert (RECEIPT in there) == (done.returncode == 0), number
    assert refused > 1


def published(folder):
    receipt = json.loads((folder / RECEIPT).read_bytes())
    return {name: (folder / name).read_bytes() for name in (RECEIPT, *published_files(receipt))}


def test_what_does_not_verify_is_not_published(copied_run, hub_server, cppmill):
    (copied_run.out / "tokenizer" / "findings.md").write_text("changed")
    assert cppmill("push", NAME, copied_run.out, check=False).returncode == 1
    assert not hub_server.requests


def test_a_hub_that_refuses_or_goes_on_failing_ends_a_push(run, hub_server, cppmill, monkeypatch):
    monkeypatch.setattr(hub, "PAUSE_SECONDS", 0)
    monkeypatch.setattr("pipelines.versions.verify.verify", lambda *_, **__: [])
    for status, code, message in ((401, 2, "the Hub refuses it"), (500, 1, "push again, which sends only what is")):
        hub_server.failures = lambda method, path, status=status: status
        done = cppmill("push", NAME, run.out, check=False)
        assert done.returncode == code
        assert message in done.stderr
        assert "hf_secret" not in done.stderr + done.stdout
    assert cppmill("push", "no name", run.out, check=False).returncode == 2


def test_a_token_that_is_no_header_is_not_repeated(run, hub_server, cppmill, monkeypatch):
    monkeypatch.setattr(hub, "PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("HF_TOKEN", "hf_hush\nmore")
    done = cppmill("push", NAME, run.out, check=False)
    assert done.returncode != 0
    assert "hf_***" in done.stderr
    assert "hush" not in done.stdout + done.stderr
    monkeypatch.setenv("HF_TOKEN", "hf_hushé")
    done = cppmill("push", NAME, run.out, check=False)
    assert (done.returncode, "HF_TOKEN has a character that no token has" in done.stderr) == (2, True), done.stderr
    assert "hush" not in done.stdout + done.stderr
