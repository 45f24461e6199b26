"""A run that ends while a command reads its folder: the command says so, and writes nothing of two runs."""

import json
import subprocess

import pytest

from pipelines.publish import provenance
from pipelines.report import left_out, program
from pipelines.stages import build
from transforms.records import signatures

COMMANDS = {
    "report": (program, "read_facts", ["report", "{run}", "--out", "{to}"]),
    "report at its end": (program, "render_report", ["report", "{run}", "--out", "{to}"]),
    "left out": (left_out, "render_page", ["report", "{run}", "--left-out", "--out", "{to}"]),
    "provenance": (provenance, "render_card", ["provenance", "{run}", "--out", "{to}"]),
    "sign before it reads": (signatures, "sign", ["sign", "{run}", "--key", "{key}"]),
    "sign": (signatures, "_ssh_keygen", ["sign", "{run}", "--key", "{key}"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_receipt_that_is_replaced_meanwhile_ends_the_command(copied_run, cppmill, monkeypatch, tmp_path, name):
    module, function, words = COMMANDS[name]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    receipt, to = copied_run.out / "receipt.json", tmp_path / "to"
    other = json.dumps(json.loads(receipt.read_bytes()) | {"totals": {}})
    whole = getattr(module, function)

    def replaced(*arguments, **options):
        receipt.unlink()
        receipt.write_text(other)
        return whole(*arguments, **options)

    monkeypatch.setattr(module, function, replaced)
    places = {"run": copied_run.out, "to": to, "key": tmp_path / "key"}
    done = cppmill(*(word.format(**places) for word in words), check=False)
    assert (done.returncode, "a run replaced it meanwhile; try again" in done.stderr) == (1, True), done.stderr
    assert not to.exists()
    assert not (copied_run.out / "receipt.json.sig").exists()


def test_a_signature_of_a_receipt_that_is_replaced_at_the_last_moment_goes(copied_run, cppmill, monkeypatch, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    receipt, publish = copied_run.out / "receipt.json", signatures.OutputFolder.publish_bytes

    def replaced(*arguments):
        receipt.write_bytes(receipt.read_bytes() + b"\n")
        return publish(*arguments)

    monkeypatch.setattr(signatures.OutputFolder, "publish_bytes", replaced)
    done = cppmill("sign", copied_run.out, "--key", tmp_path / "key", check=False)
    assert (done.returncode, "a run replaced it meanwhile; try again" in done.stderr) == (1, True), done.stderr
    assert not (copied_run.out / "receipt.json.sig").exists()


def test_a_given_tokenizer_that_is_replaced_while_it_is_copied_is_refused(run, cppmill, monkeypatch, tmp_path):
    copy = build.shutil.copyfile

    def replaced(source, target):
        copy(source, target)
        if source.name == "manifest.json":
            source.write_bytes(source.read_bytes() + b"\n")

    folder = tmp_path / "given"
    build.shutil.copytree(run.out / "tokenizer", folder)
    monkeypatch.setattr(build.shutil, "copyfile", replaced)
    done = cppmill("run", *run.command[1:2], "--out", tmp_path / "out", "--tokenizer", folder, check=False)
    assert (done.returncode, "it changed while it was copied; run again" in done.stderr) == (2, True), done.stderr
