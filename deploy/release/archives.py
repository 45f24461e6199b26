"""Source archives with the same bytes for the same files, whoever makes them, wherever and whenever.

setuptools writes the times, owners and modes that files have on the machine. maturin does not.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path


def normalize(archive: Path, *, epoch: int) -> None:
    """Rewrite a `.tar.gz`: the same files, sorted, of one time and no owner, with the usual modes.

    Args:
        archive: Replaced in place.
        epoch: The time of all, in seconds since 1970.
    """
    packed = io.BytesIO()
    with tarfile.open(archive) as source, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target:
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, epoch
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            target.addfile(plain, source.extractfile(member) if member.isfile() else None)
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))
