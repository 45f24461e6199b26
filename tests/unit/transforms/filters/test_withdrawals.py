"""The list of withdrawn documents: whom it finds, and that it says nothing but hashes."""

import pyarrow as pa
import pytest

from schemas.errors import ConfigError, IntegrityError
from transforms.filters.withdrawals import COLUMNS, Withdrawals, read_withdrawals

ROWS = [
    ("a" * 64, "acme", "acme/secret/key.h", "MIT OR GPL-2.0-only"),
    ("b" * 64, "zlib", "zlib/inflate.c", None),
    ("c" * 64, "acme", "acme/secretary.h", "MIT"),
]
TABLE = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in ROWS])


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ({"doc_ids": ["B" * 64]}, [1]),
        ({"paths": ["acme/secret/key.h"]}, [0]),
        ({"paths": ["acme/secret/"]}, [0]),
        ({"paths": ["acme/secret", "secret/"]}, []),
        ({"projects": ["acme"]}, [0, 2]),
        ({"licenses": ["gpl-2.0-only"]}, [0]),
        ({"licenses": ["mit"], "projects": ["zlib"]}, [0, 1, 2]),
        ({"paths": ["zlib"], "doc_ids": ["acme"]}, []),
    ],
)
def test_a_document_is_found_by_what_is_listed_and_by_nothing_else(values, rows):
    assert [row for row, _ in Withdrawals.of(values).find(TABLE)] == rows


def test_an_altered_document_is_found_by_its_source_too():
    found = TABLE.append_column("source_doc_id", [["d" * 64, None, None]])
    for listed, expected in (("D" * 64, [0]), ("a" * 64, [0]), ("c" * 64, [2])):
        assert [row for row, _ in Withdrawals.of({"doc_ids": [listed]}).find(found)] == expected


def test_a_list_comes_back_from_its_bytes_which_name_nothing():
    made = Withdrawals.of({"paths": ["acme/secret/key.h"], "projects": ["zlib"], "doc_ids": ["a" * 64]})
    data = made.to_bytes()
    assert Withdrawals.from_bytes(data, where="list") == made
    assert not any(word in data for word in (b"acme", b"zlib", b"a" * 64))
    assert (made | made).digest == made.digest != (made | Withdrawals.of({"projects": ["acme"]})).digest


def test_what_is_no_list_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="withdrawn.json: cannot be read"):
        read_withdrawals(str(tmp_path / "withdrawn.json"))
    data = Withdrawals.of({"paths": ["a"]}).to_bytes()
    others = [b"[]", b'{"format":"cppmill-withdrawn-1"}', Withdrawals().to_bytes().replace(b"[]", b'["x"]', 1)]
    others += [Withdrawals().to_bytes().replace(b"[]", f'["{64 * "z"}"]'.encode(), 1), data[:-1] + b',"paths":[]}']
    for data in others:
        with pytest.raises(IntegrityError, match="not a list of format cppmill-withdrawn-1"):
            Withdrawals.from_bytes(data, where="list")
        file = tmp_path / "other.json"
        file.write_bytes(data)
        with pytest.raises(ConfigError, match="other.json: not a list of format cppmill-withdrawn-1"):
            read_withdrawals(str(file))
