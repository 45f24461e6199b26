"""`python -m deploy.release`: what `make licenses` and `make wheels` write beside the wheels."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.programs import run_program
from deploy.release.archives import normalize
from deploy.release.bills import Toolchain, crates_bill, packages_bill
from deploy.release.crates import TARGETS, linked_crates
from deploy.release.emulation import fetch_python
from deploy.release.licenses import PATH, check_allowed, render
from schemas.errors import ConfigError

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code: 0, or 2 with a message for what went wrong."""
    return run_program(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    what = parser.add_subparsers(required=True)
    licenses = what.add_parser("licenses", help=f"write {PATH}")
    licenses.set_defaults(do=_licenses)
    crates = what.add_parser("crates-bill", help="write the bill of materials of the native core")
    crates.add_argument("--target", choices=TARGETS, default=TARGETS[0], help="what the wheel is for (%(default)s)")
    crates.set_defaults(do=_crates_bill)
    packages = what.add_parser("packages-bill", help="write the bill of materials of cppmill")
    packages.add_argument("--core", type=Path, nargs="+", required=True, help="the wheels of the native core")
    packages.set_defaults(do=_packages_bill)
    for bill in (crates, packages):
        bill.add_argument("--out", type=Path, required=True, help="the file")
    emulator = what.add_parser("emulator", help="fetch a Python for aarch64 into the cache, unless it is there")
    emulator.set_defaults(do=_emulator)
    sdist = what.add_parser("normalize", help="rewrite a source archive, so its bytes are the same everywhere")
    sdist.add_argument("archive", type=Path)
    sdist.set_defaults(do=_normalize)
    sums = what.add_parser("sums", help="write SHA256SUMS of the files of a folder, and list them")
    sums.add_argument("folder", type=Path)
    sums.set_defaults(do=_sums)
    return parser


def _licenses(_: argparse.Namespace) -> None:
    (REPOSITORY / PATH).write_text(render(linked_crates(REPOSITORY), REPOSITORY))


def _crates_bill(options: argparse.Namespace) -> None:
    crates = linked_crates(REPOSITORY, options.target)
    check_allowed(crates)
    version = importlib.metadata.version("cppmill-core")
    options.out.write_text(crates_bill(crates, Toolchain.of(REPOSITORY), version=version, epoch=_epoch()))


def _packages_bill(options: argparse.Namespace) -> None:
    options.out.write_text(packages_bill(REPOSITORY, options.core))


def _emulator(_: argparse.Namespace) -> None:
    print(f"Python for aarch64: {fetch_python()}")


def _normalize(options: argparse.Namespace) -> None:
    normalize(options.archive, epoch=_epoch())


def _epoch() -> int:
    try:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    except (KeyError, ValueError) as error:
        raise ConfigError("SOURCE_DATE_EPOCH: not set to seconds since 1970; `make wheels` sets it") from error


def _sums(options: argparse.Namespace) -> None:
    files = sorted(file for file in options.folder.iterdir() if file.is_file() and file.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (options.folder / "SHA256SUMS").write_text("".join(lines))
    for file in files:
        print(f"{file.stat().st_size / 1e6:5.1f} MB  {file}")


if __name__ == "__main__":
    sys.exit(main())
