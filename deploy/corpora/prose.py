"""Fetches prose to train and to measure on: the pages of Debian's documentation packages, as plain text.

Each package becomes one `.txt` file, its pages divided by `<|endoftext|>`, in `train` or in `held-out`. It needs
`apt-get` and `dpkg-deb`, which Debian and Ubuntu have.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

from schemas.errors import ConfigError

SEPARATOR = "<|endoftext|>"
PACKAGES = {
    "train": (
        "erlang-doc",
        "manpages-dev",
        "octave-doc",
        "openjdk-17-doc",
        "qtbase5-doc-html",
        "r-doc-html",
        "racket-doc",
        "rust-doc",
        "vtk9-doc",
    ),
    "held-out": ("libreoffice-help-en-us", "perl-doc", "postgresql-doc-15"),
}
"""The packages, by folder; those of `held-out` are measured alone."""

_LEAST_CHARACTERS = 200
_HTML = (".html", ".htm", ".xhtml")
_MANUAL = re.compile(r"\.[1-9][a-z]*$")
_SILENT = frozenset(("head", "nav", "script", "style"))
_BLOCKS = frozenset(
    ("br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p", "pre", "table", "td", "tr")
)


class _Text(HTMLParser):
    """Collects the text of a page, a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in _SILENT
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def page_text(file: Path) -> str:
    """Return the text of a page of HTML, a manual page or a text file; empty if it is none, or has little."""
    name, data = file.name.lower(), file.read_bytes()
    try:
        if name.endswith(".gz"):
            name, data = name.removesuffix(".gz"), gzip.decompress(data)
        text = data.decode()
    except (EOFError, OSError, zlib.error, UnicodeDecodeError):
        return ""
    if name.endswith(_HTML):
        parser = _Text()
        parser.feed(text)
        text = re.sub(r"[^\S\n]*\n[^\S\n]*", "\n", re.sub(r"[^\S\n]+", " ", "".join(parser.parts)))
        text = re.sub(r"\n{3,}", "\n\n", text)
    elif not name.endswith(".txt") and not _MANUAL.search(name):
        return ""
    text = text.replace(SEPARATOR, "").strip()
    return text if len(text) >= _LEAST_CHARACTERS else ""


def write_pages(folder: Path, file: Path) -> None:
    """Write the pages below a folder into a text file, each once, in the order of their paths."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    seen = set()
    with ProcessPoolExecutor() as workers, file.open("w", encoding="utf-8", newline="") as out:
        for text in workers.map(page_text, files, chunksize=64):
            digest = hashlib.sha256(text.encode()).digest()
            if text and digest not in seen:
                seen.add(digest)
                out.write(text + SEPARATOR)


def fetch_prose(folder: Path) -> None:
    """Fetch the packages that are missing below a folder.

    Args:
        folder: Gets `train/PACKAGE.txt` and `held-out/PACKAGE.txt`.

    Raises:
        ConfigError: If a package cannot be fetched.
    """
    for part, package in _missing(folder):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                subprocess.run(["apt-get", "download", package], cwd=scratch, check=True, capture_output=True)
                [archive] = Path(scratch).glob("*.deb")
                subprocess.run(["dpkg-deb", "--extract", archive, f"{scratch}/files"], check=True, capture_output=True)
            except (OSError, ValueError, subprocess.CalledProcessError) as error:
                said = getattr(error, "stderr", b"") or b""
                raise ConfigError(f"{package}: not fetched: {error}; {said.decode(errors='replace')}") from error
            (folder / part).mkdir(parents=True, exist_ok=True)
            staged = folder / part / f".{package}"
            write_pages(Path(scratch, "files"), staged)
            staged.replace(folder / part / f"{package}.txt")
        print(f"{part}/{package}.txt: {(folder / part / f'{package}.txt').stat().st_size:,} bytes", flush=True)


def _missing(folder: Path) -> Iterator[tuple[str, str]]:
    for part, packages in PACKAGES.items():
        yield from ((part, package) for package in packages if not (folder / part / f"{package}.txt").exists())
