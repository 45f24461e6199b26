"""Signatures of receipts: OpenSSH's own, by allowed signers alone, for this receipt alone."""

import subprocess

import pytest

from schemas.errors import ConfigError
from transforms.records.receipts import RECEIPT, SIGNATURE
from transforms.records.signatures import NAMESPACE, check_signature, sign
from transforms.storage.folder import OutputFolder


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two keys, and a file of allowed signers with the first."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    public = (folder / "alice.pub").read_text()
    (folder / "allowed").write_text(f'alice@example.org namespaces="{NAMESPACE}" {public}')
    return folder


@pytest.fixture
def run(tmp_path):
    """A folder with a receipt."""
    (tmp_path / RECEIPT).write_bytes(b'{"format":"cppmill-receipt-1"}')
    return OutputFolder(tmp_path)


def test_a_receipt_that_an_allowed_signer_signed_is_believed(run, keys):
    assert sign(run, keys / "alice", lambda: None) == run.where(SIGNATURE)
    assert list(check_signature(run, keys / "allowed")) == []
    verify = ["ssh-keygen", "-Y", "verify", "-f", keys / "allowed", "-I", "alice@example.org", "-n", NAMESPACE]
    done = subprocess.run([*verify, "-s", run.where(SIGNATURE)], input=run.read_bytes(RECEIPT), check=False)
    assert done.returncode == 0


def test_a_missing_foreign_or_altered_signature_or_another_receipt_is_not(run, keys):
    check = lambda: list(check_signature(run, keys / "allowed"))  # noqa: E731
    assert check() == [f"{run.where(SIGNATURE)}: missing; `cppmill sign` makes a signature"]
    sign(run, keys / "mallory", lambda: None)
    assert "not by any of" in check()[0]
    sign(run, keys / "alice", lambda: None)
    whole = run.read_bytes(SIGNATURE)
    changed = b"B" if whole[-40:-39] == b"A" else b"A"
    for damaged in (b"", whole[:-40] + changed + whole[-39:], whole.replace(b"U1NIU0lH", b"U1NIU0lI")):
        run.publish_bytes(SIGNATURE, damaged)
        assert len(check()) == 1
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", keys / "alice", "-n", "git"]
    other = subprocess.run(command, input=run.read_bytes(RECEIPT), capture_output=True, check=True).stdout
    run.publish_bytes(SIGNATURE, other)
    assert len(check()) == 1, "a signature for Git is none"
    run.publish_bytes(SIGNATURE, whole)
    assert check() == []
    run.publish_bytes(RECEIPT, b'{"format":"cppmill-receipt-1" }')
    assert "not a signature of this receipt" in check()[0]


def test_what_cannot_sign_or_be_checked_is_said(run, keys):
    with pytest.raises(ConfigError, match="it cannot sign: .*No such file"):
        sign(run, keys / "nobody", lambda: None)
    with pytest.raises(ConfigError, match="--signed-by .*: no such file"):
        list(check_signature(run, keys / "nobody"))
