"""Machine-packed files: what of real C++ is packed, and that no code by hand is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from transforms.filters.minified import find_minified

HEADERS = sorted({*Path(np.get_include()).rglob("*.h"), *Path(pa.get_include()).rglob("*.h")})
TABLE = b"static const unsigned crc[] = {\n" + b"    0x1234abcd, 0x00000000UL, 17,\n" * 300 + b"};\n"


def pack(source: bytes) -> bytes:
    """Drop comments, directives and every line feed."""
    bare = re.sub(rb"//[^\n]*|/\*.*?\*/|^\s*#(?:[^\n]*\\\n)*[^\n]*", b"", source, flags=re.S | re.M)
    return b" ".join(bare.split())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (TABLE, "numbers"),
        (b"double t[] = {\n" + b"  -1.5e-3f, 2.0, 1e10,\n" * 100 + b"};\n", "numbers"),
        (b'const char *blob = "' + rb"\x00\x7f\377" * 200 + b'";\n', "numbers"),
        (b"char t[]={" + (b"char(83),char(68)," * 10 + b"\n") * 20 + b"};", "white space"),
        (b"int a; " * 300, "in lines of more than 1000 bytes"),
        (b"0," * 499, None),
        (b"", None),
        (b" \n" * 1000, None),
        (b"x" * 900 + b"\n", None),
    ],
)
def test_data_and_packed_source_are_found(content: bytes, why: str | None) -> None:
    found = find_minified(content)
    assert found is None if why is None else found is not None and found.endswith(why)


def test_a_table_with_as_much_code_beside_it_is_kept() -> None:
    assert find_minified(TABLE) is not None
    assert find_minified(TABLE + HEADERS[0].read_bytes()[: len(TABLE)] + b"\n") is None


def test_no_header_that_people_write_is_packed_and_each_is_once_it_is_packed() -> None:
    long = [path.read_bytes() for path in HEADERS if len(pack(path.read_bytes())) > 2000]
    assert len(long) > 50
    assert not [path for path in HEADERS if find_minified(path.read_bytes())]
    assert all(find_minified(pack(source)) for source in long)
