"""`native/py/THIRD_PARTY_LICENSES`: the licences of everything that is linked into the native core, with their texts.

It is in every wheel, in `dist-info/licenses`. Texts are those that the crates are published with, each once; a crate
without one is taken under the Apache License, if its licence allows that. The standard library is of the toolchain
that `rust-toolchain.toml` pins. What Zig links into the wheels of a release is in `zig/`, as most checkouts do without
Zig.

cargo-about 0.9.3 is not a replacement: it leaves out NOTICE files, which the Apache License requires of Arrow, and for
libm it gives the MIT License without the copyright holders.
"""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from license_expression import AND, BaseSymbol, Licensing, get_spdx_licensing

from deploy.release.crates import TARGETS, Crate
from schemas.errors import ConfigError

PATH = Path("native/py/THIRD_PARTY_LICENSES")
"""Of the file, in the checkout."""

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "ISC",
        "MIT",
        "Unicode-3.0",
        "Unlicense",
        "Zlib",
    }
)
"""Licences that may be linked into a wheel: their terms are met by the file. A choice (OR) must have one of them."""

ZIG_FILES = {
    "LICENSE": ("Zig's compiler library", "LICENSE", "MIT"),
    "libunwind.txt": ("LLVM's libunwind", "lib/libunwind/LICENSE.TXT", "Apache-2.0 WITH LLVM-exception"),
    "glibc.txt": ("glibc's callers of stat", "lib/libc/glibc/io/stat64-2.32.c", "LGPL-2.1-or-later, with an exception"),
}
"""What Zig links into the wheels of a release: by file of `zig/`, what it is of, its place in Zig, the licence."""

_LICENSE_FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
_RULE = "=" * 100
_ZIG = Path(__file__).parent / "zig"


def is_allowed(expression: str) -> bool:
    """Say whether an SPDX expression can be met by `ALLOWED` alone; an unknown licence cannot.

    Example:
        >>> is_allowed("GPL-3.0-only OR (MIT AND Zlib)"), is_allowed("MIT AND GPL-3.0-only"), is_allowed("")
        (True, False, False)
    """

    def meets(node: object) -> bool:
        if isinstance(node, BaseSymbol) or node is None:
            return str(node) in ALLOWED
        parts = [meets(part) for part in node.args]  # type: ignore[attr-defined]
        return all(parts) if isinstance(node, AND) else any(parts)

    return meets(_licensing().parse(expression))


def check_allowed(crates: Iterable[Crate]) -> None:
    """Raise if a crate has a licence that is not allowed.

    Raises:
        ConfigError: With each such crate, its licence, and what to do.
    """
    refused = [f"{crate.label} ({crate.license or 'no licence'})" for crate in crates if not is_allowed(crate.license)]
    if refused:
        raise ConfigError(
            f"{', '.join(refused)}: not among the licences that may be linked into a wheel; do without the crate, "
            "or add the licence to ALLOWED in deploy/release/licenses.py if its terms can be met"
        )


def render(crates: Iterable[Crate], repository: Path) -> str:
    """Return the text of the file.

    Args:
        crates: What is linked, all of allowed licences.
        repository: The folder of the checkout, for our own licence and the toolchain.

    Raises:
        ConfigError: If a licence is not allowed, or a text is missing that must be there.
    """
    crates = list(crates)
    check_allowed(crates)
    texts = [(crate.label, text) for crate in crates for text in _texts(crate, repository)]
    texts += [(name, text) for name, found in _standard_library(repository).items() for text in found]
    texts += [(name, _tidy((_ZIG / file).read_text())) for file, (name, _, _) in ZIG_FILES.items()]
    users: dict[str, list[str]] = {}
    for name, text in texts:
        users.setdefault(" ".join(text.split()), []).append(name)
    first = {" ".join(text.split()): text for _, text in reversed(texts)}
    lines = [
        "What others wrote that is linked into the native core of cppmill, and its licences (by `make licenses`).",
        "",
        *(f"{crate.label}: {crate.license}" for crate in crates),
        f"The standard library of Rust: Apache-2.0 OR MIT, with {', '.join(standard_crates(repository))}",
        *(f"{name}: {license}" for name, _, license in ZIG_FILES.values()),
    ]
    blocks = (f"{_RULE}\nOf {', '.join(labels)}:\n\n{first[words]}" for words, labels in users.items())
    return "\n".join([*lines, "", *blocks])


@cache
def _licensing() -> Licensing:
    licensing: Licensing = get_spdx_licensing()
    return licensing


def _texts(crate: Crate, repository: Path) -> list[str]:
    files = sorted(file for file in crate.folder.iterdir() if file.is_file() and _LICENSE_FILE.match(file.name))
    if files:
        return [_tidy(file.read_text()) for file in files]
    if "Apache-2.0" not in re.split(r"[ ()]+", crate.license):
        raise ConfigError(f"{crate.label}: {crate.folder} has no text of its licence, {crate.license}; find it")
    return [_apache(repository)]


def _apache(repository: Path) -> str:
    return _tidy((repository / "LICENSE").read_text())


def _tidy(text: str) -> str:
    """The text as lines that end in one way, so that the same licence is the same text."""
    return "\n".join(line.rstrip() for line in text.strip("\ufeff\r\n ").splitlines()) + "\n"


@cache
def _sysroot(repository: Path) -> Path:
    command = ["rustc", "--print", "sysroot"]
    return Path(subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout.strip())


def standard_crates(repository: Path, target: str = TARGETS[0]) -> list[str]:
    """Return the names of the crates of Rust's standard library for a target, sorted; none if it is not installed.

    Args:
        repository: The folder of the checkout, which pins the toolchain.
        target: One of `TARGETS`.
    """
    libraries = (_sysroot(repository) / "lib/rustlib" / target / "lib").glob("lib*.rlib")
    names = {library.stem.removeprefix("lib").rpartition("-")[0] for library in libraries}
    return sorted(name for name in names if not name.startswith("rustc_std_workspace"))


def _standard_library(repository: Path) -> dict[str, list[str]]:
    """Texts by name: of the library itself, and of the crates in it, from the notices that come with the toolchain."""
    notices = _sysroot(repository) / "share/doc/rust/COPYRIGHT-library.html"
    if not notices.is_file():
        raise ConfigError(f"{notices}: missing; rustup installs it with the toolchain of rust-toolchain.toml")
    linked = set(standard_crates(repository))
    found = {"The standard library of Rust": [_apache(repository)]}
    for section in notices.read_text().split("<h3>📦 ")[1:]:
        name, _, version = section[: section.index("</h3>")].rpartition("-")
        if name.replace("-", "_") in linked:
            texts = re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL)
            found[f"{name} {version} (standard library)"] = [_tidy(html.unescape(text)) for text in texts]
    return found
