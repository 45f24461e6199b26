"""What the footer and the page headers of a Parquet file say falsely of its rows is found."""

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import IntegrityError
from transforms.storage.folder import naming_damage
from transforms.storage.footers import check_footer
from transforms.storage.thrift import read_struct

SCHEMA = pa.schema(
    [
        pa.field("project", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("content", pa.binary(), nullable=False),
        pa.field("num_bytes", pa.uint64(), nullable=False),
        pa.field("license", pa.string()),
        pa.field("token_ids", pa.list_(pa.field("item", pa.uint16(), nullable=False)), nullable=False),
    ]
)
ROWS = [
    {
        "project": f"p{n // 9}",
        "path": f"a/{n:04}.h",
        "content": b"x" * n,
        "num_bytes": n,
        "license": None,
        "token_ids": [],
    }
    for n in range(40)
]


def written(path, rows, dictionaries=("project",)):
    """Write rows with the settings of a documents shard."""
    statistics = ["project", "path", "num_bytes", "license"]
    with pq.ParquetWriter(
        path,
        SCHEMA,
        compression="zstd",
        use_dictionary=list(dictionaries),
        write_statistics=statistics,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA), row_group_size=25)
    return path


@pytest.fixture
def file(tmp_path):
    """A file of two row groups."""
    return written(tmp_path / "x.parquet", ROWS)


def problems(path):
    """Return what is found, by Arrow too."""
    try:
        with naming_damage(str(path)), pq.ParquetFile(path, page_checksum_verification=True) as file:
            found = list(check_footer(path, file, path.name))
            file.read()
        return found
    except IntegrityError as error:
        return [str(error)]


def forge(path, old, new, *, count=-1):
    data = path.read_bytes()
    assert old in data and len(old) == len(new)
    path.write_bytes(data.replace(old, new, count))


def footer_begins(data):
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def test_a_file_as_it_is_written_has_nothing_false(file):
    assert problems(file) == []


@pytest.mark.parametrize("dictionaries", [SCHEMA.names[:3], ["path"], []])
def test_a_file_without_rows_as_it_is_written_has_nothing_false(tmp_path, dictionaries):
    empty = written(tmp_path / "x.parquet", [], dictionaries)
    assert problems(empty) == []
    data = empty.read_bytes()
    start = footer_begins(data)
    empty.write_bytes(data[:start] + b"hidden" + data[start:])
    assert problems(empty) == ["x.parquet: there are bytes before its footer that belong to no column"]


def test_statistics_that_hide_rows_are_found(file):
    forge(file, b"a/0024.h", b"a/0003.h")
    assert "column path: its statistics are" in problems(file)[0]
    assert pq.read_table(file, filters=[("path", "==", "a/0024.h")]).num_rows == 0


def test_statistics_of_another_version_of_the_writer_are_compared_too(file):
    version = f"version {pa.__version__}".encode()
    forge(file, version, version[:-1] + (b"0" if version[-1:] != b"0" else b"1"))
    assert problems(file) == []
    forge(file, b"a/0024.h", b"a/0003.h")
    assert "column path: its statistics are" in problems(file)[0]


def test_statistics_of_a_page_are_found(file):
    forge(file, b"a/0024.h", b"a/0003.h", count=1)
    assert problems(file) == [
        "x.parquet: row group 0: column path: the headers of its pages are not those that are written"
    ]


def test_another_program_that_wrote_it_is_named(file):
    forge(file, b"parquet-cpp-arrow", b"parquet-mr-forged")
    assert "written by 'parquet-mr-forged" in problems(file)[0]


def test_bytes_that_belong_to_no_column_are_found(file):
    data = file.read_bytes()
    start = footer_begins(data)
    file.write_bytes(data[:start] + b"hidden" + data[start:])
    assert problems(file) == ["x.parquet: there are bytes before its footer that belong to no column"]


def test_every_flipped_bit_of_a_footer_is_found_but_for_its_keys(file):
    """Keys have checks of their own: their values are a record's, or the schema that readers go by.

    A file may be of any version of its writer.
    """
    data, random = file.read_bytes(), Random(26)
    keys = range(
        data.index(b"ARROW:schema"), data.index(b"parquet-cpp") + len(f"parquet-cpp-arrow version {pa.__version__}")
    )
    for place in random.sample(range(footer_begins(data), len(data) - 8), 150):
        changed = bytearray(data)
        changed[place] ^= 1 << random.randrange(8)
        file.write_bytes(changed)
        assert place in keys or problems(file), place


def test_a_struct_that_ends_too_early_is_refused():
    assert read_struct(b"\x15\x02\x18\x01a\x00", 0) == ({1: 1, 2: b"a"}, 6)
    with pytest.raises(IndexError):
        read_struct(b"\x15\x02", 0)
