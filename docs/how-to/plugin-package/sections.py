"""An example of a reader for cppmill: files of several documents, each behind a line `==== NAME`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from cppmill import Reader

_MARK = b"==== "


def read_sections(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each document.

    Raises:
        ValueError: If the file does not begin with a mark; the file is then `dead[corrupt]`.
    """
    name, lines = "", list[bytes]()
    for line in file:
        if line.startswith(_MARK):
            if name:
                yield name, b"".join(lines)
            name, lines = line[len(_MARK) :].strip().decode(), []
        elif name:
            lines.append(line)
        else:
            raise ValueError("no mark before the first line")
    if name:
        yield name, b"".join(lines)


READER = Reader(version="1", read=read_sections)
