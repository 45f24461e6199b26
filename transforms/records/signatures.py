"""Signatures of receipts with SSH keys, offline: `receipt.json.sig` beside the receipt, made by `ssh-keygen -Y sign`.

The receipt names every file of a run by its SHA-256, so its signature covers all of them. A file in the format of
OpenSSH's `allowed_signers` (ssh-keygen(1)) says who may sign. All cryptography is OpenSSH's; keys may be in its agent
or on a security key.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from schemas.errors import ConfigError, IntegrityError
from transforms.records.receipts import RECEIPT, SIGNATURE
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import scratch_folder

NAMESPACE = "cppmill"
"""What signatures are for: those of Git or of e-mail with the same key are none of ours."""

_ARMORED = re.compile(rb"-----BEGIN SSH SIGNATURE-----\n([0-9A-Za-z+/=]+\n)+-----END SSH SIGNATURE-----\n")
"""A signature as OpenSSH writes it; what it reads may have anything behind it."""


def sign(out: OutputFolder, key: Path, check_unchanged: Callable[[], None]) -> str:
    """Sign the receipt of a run, and return the place of the signature; one that was there is replaced.

    Args:
        out: The run's folder.
        key: The private key, or the public one if the agent has the private one.
        check_unchanged: Raises if the receipt is not the one that was verified.

    Raises:
        ConfigError: If the key cannot sign.
        IntegrityError: If a run replaced the receipt meanwhile; there is no signature then.
    """
    done = _ssh_keygen("sign", "-f", str(key), data=out.read_bytes(RECEIPT))
    if done.returncode:
        raise ConfigError(f"--key {key}: it cannot sign: {_reason(done)}")
    check_unchanged()
    out.publish_bytes(SIGNATURE, done.stdout)
    try:
        check_unchanged()
    except IntegrityError:
        out.remove(SIGNATURE)
        raise
    return out.where(SIGNATURE)


def check_signature(out: OutputFolder, allowed_signers: Path) -> Iterator[str]:
    """Yield what is wrong with the signature of a run: it is missing, foreign, or of another receipt.

    Args:
        out: The run's folder.
        allowed_signers: Principals and their public keys.

    Raises:
        ConfigError: If the file of the signers cannot be read.
    """
    if not allowed_signers.is_file():
        raise ConfigError(
            f"--signed-by {allowed_signers}: no such file; it takes allowed signers, as ssh-keygen(1) says"
        )
    where = out.where(SIGNATURE)
    try:
        signature, receipt = out.read_bytes(SIGNATURE), out.read_bytes(RECEIPT)
    except FileNotFoundError as error:
        yield f"{error.filename}: missing; `cppmill sign` makes a signature"
        return
    if not _ARMORED.fullmatch(signature):
        yield f"{where}: not a signature of OpenSSH and nothing else; restore it, or sign again"
        return
    with tempfile.NamedTemporaryFile(dir=scratch_folder(), suffix=".sig") as file:
        file.write(signature)
        file.flush()
        signers, name = ["-f", str(allowed_signers)], ["-s", file.name]
        found = _ssh_keygen("find-principals", *signers, *name)
        principals = found.stdout.decode("utf-8", "replace").splitlines()
        if found.returncode or not principals:
            yield f"{where}: not by any of {allowed_signers} ({_reason(found)})"
            return
        tried = [_ssh_keygen("verify", *signers, "-I", who, *name, data=receipt) for who in principals]
        if all(done.returncode for done in tried):
            yield f"{where}: not a signature of this receipt ({_reason(tried[0])})"


def _ssh_keygen(action: str, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    namespace = [] if action == "find-principals" else ["-n", NAMESPACE]
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, *arguments, *namespace], input=data, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise ConfigError("ssh-keygen: not found; install OpenSSH (on Debian or Ubuntu: openssh-client)") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what ssh-keygen said, in one line."""
    return " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split()) or f"exit code {done.returncode}"
