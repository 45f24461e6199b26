"""Signed runs: `verify` believes them by their signature alone, and a run that is up to date keeps it."""

import subprocess

from cppmill import verify as verified


def test_a_signed_run_verifies_by_its_signer_and_stays_signed(copied_run, tmp_path, cppmill):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    (tmp_path / "allowed").write_text(f"me {(tmp_path / 'key.pub').read_text()}")
    verify = ("verify", copied_run.out, "--reencode", "0", "--signed-by", tmp_path / "allowed")
    done = cppmill(*verify, check=False)
    assert (done.returncode, "receipt.json.sig: missing" in done.stdout) == (1, True)
    (missing,) = verified(copied_run.out, reencode=0, signed_by=tmp_path / "allowed")
    assert "receipt.json.sig: missing" in missing
    cppmill("sign", copied_run.out, "--key", tmp_path / "key")
    assert verified(copied_run.out, reencode=0, signed_by=tmp_path / "allowed") == []
    cppmill("verify", copied_run.out, "--reencode", "0")
    cppmill(*copied_run.command)
    cppmill(*verify)
    with (copied_run.out / "receipt.json.sig").open("ab") as file:
        file.write(b"more\n")
    (found,) = verified(copied_run.out, reencode=0, signed_by=tmp_path / "allowed")
    assert "receipt.json.sig: not a signature of OpenSSH and nothing else" in found
    (copied_run.out / "tokenizer" / "findings.md").write_text("changed")
    assert cppmill(*verify, check=False).returncode == 1
    assert cppmill("sign", copied_run.out, "--key", tmp_path / "key", check=False).returncode == 1
