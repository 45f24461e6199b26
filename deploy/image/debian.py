"""Debian's part of a base image, made by mmdebstrap from the signed archive, its packages compared with a written list.

The archive offers only the newest version of each package. So `debian.lock` says which versions there were at a moment,
and a base with others is refused: either that moment's archive is taken, from Debian's snapshots, or the list is
written again.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from deploy.local.commands import run
from schemas.errors import IntegrityError

LOCK = Path(__file__).parent / "debian.lock"
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "libgomp1", "python-is-python3", "python3-pip", "tzdata", "usr-is-merged")
"""Beside the essential packages and apt. pip needs setuptools and wheel, which one locked package is built with."""

_ARCHIVE = "http://deb.debian.org"
_SNAPSHOTS = "http://snapshot.debian.org/archive"
_MOMENT = "%Y%m%dT%H%M%SZ"
# pip may install beside Debian's own packages: nothing else is in the image.
_HOOKS = ('rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',)
_LEFT_OUT = ("doc", "man", "locale")


def options() -> list[str]:
    """Return the options of mmdebstrap that say what is in the base, all but the archive."""
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
    return [
        "--variant=apt",
        "--format=tar",
        f"--include={','.join(PACKAGES)}",
        # Without this hook, the merge of /bin and /usr/bin brings all of Perl.
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        *left_out,
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        *(f"--customize-hook={hook}" for hook in _HOOKS),
    ]


def sources(moment: str | None) -> list[str]:
    """Return the archive, its updates and its security fixes, as apt takes them.

    Args:
        moment: A moment that Debian has a snapshot of, as `debian.lock` writes it; None for the archive of today.
    """
    places = [("debian", SUITE), ("debian", f"{SUITE}-updates"), ("debian-security", f"{SUITE}-security")]
    if moment is None:
        return [f"deb {_ARCHIVE}/{archive} {suite} main" for archive, suite in places]
    # An old list of packages has run out, by its own date.
    return [f"deb [check-valid-until=no] {_SNAPSHOTS}/{archive}/{moment} {suite} main" for archive, suite in places]


def make_root(folder: Path, *, snapshot: bool = False) -> tuple[Path, dict[str, str]]:
    """Make `rootfs.tar` in a folder.

    Args:
        folder: Gets the archive and the log.
        snapshot: Take Debian's archive of the lock's moment instead of today's.

    Returns:
        The archive, and the version of each package in it.

    Raises:
        ConfigError: If mmdebstrap is missing or fails.
    """
    moment, _ = read_lock()
    archive, listed = folder / "rootfs.tar", folder / "packages.txt"
    query = f"chroot \"$1\" dpkg-query --show --showformat='${{Package}} ${{Version}}\\n' > {shlex.quote(str(listed))}"
    command = ["mmdebstrap", *options(), f"--customize-hook={query}", SUITE, str(archive)]
    command += sources(moment if snapshot else None)
    # The times of files, and with them the archive, are the same whenever it is made.
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(_seconds(moment))}
    hint = "on Debian or Ubuntu: apt-get install mmdebstrap"
    run(command, cwd=folder, log=folder / "mmdebstrap.log", hint=hint, environment=environment)
    return archive, _versions(listed.read_text(encoding="utf-8"))


def check_packages(found: Mapping[str, str]) -> None:
    """Compare packages with the lock.

    Raises:
        IntegrityError: Naming the first package that is missing, additional or of another version, and what to do.
    """
    moment, locked = read_lock()
    for name in sorted({*locked, *found}):
        if locked.get(name) != found.get(name):
            raise IntegrityError(
                f"{LOCK}: {name} is {locked.get(name)}, and Debian's archive has {found.get(name)} now; build from the "
                f"archive of {moment} with `make image SNAPSHOT=1`, or look at what changed and write the list again "
                "with `python -m deploy.image lock`"
            )


def read_lock() -> tuple[str, dict[str, str]]:
    """Return the moment of the lock, and its packages with their versions."""
    header, _, listed = LOCK.read_text(encoding="utf-8").partition("\n")
    return header.removeprefix("# "), _versions(listed)


def write_lock(packages: Mapping[str, str]) -> None:
    """Write the lock of packages that were found now."""
    lines = (f"{name} {version}\n" for name, version in sorted(packages.items()))
    LOCK.write_text(f"# {datetime.now(UTC).strftime(_MOMENT)}\n{''.join(lines)}", encoding="utf-8")


def _versions(text: str) -> dict[str, str]:
    return {name: version for name, _, version in (line.partition(" ") for line in text.splitlines())}


def _seconds(moment: str) -> int:
    return int(datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).timestamp())
