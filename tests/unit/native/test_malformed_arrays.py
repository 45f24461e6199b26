"""Arrow data whose offsets lead out of its buffers, or backwards, is refused wherever it is taken."""

import struct
from collections.abc import Callable
from pathlib import Path

import cppmill_core
import pyarrow as pa
import pytest

DECREASING = (0, 5, 2)
BINARY = pa.binary()
Kind = Callable[[pa.DataType], pa.DataType]
SCAN = '{"pattern": "cpp-words-1"}'


def texts(kind: pa.DataType = BINARY) -> pa.Array:
    """Return an array that nothing has checked; its data is far from the end of any memory page."""
    return pa.Array.from_buffers(kind, len(DECREASING) - 1, [None, packed(*DECREASING), pa.py_buffer(b"abcdefg")])


def packed(*numbers: int) -> pa.Buffer:
    return pa.py_buffer(struct.pack(f"<{len(numbers)}i", *numbers))


def lists() -> pa.Array:
    return pa.Array.from_buffers(
        pa.list_(pa.uint16()), 2, [None, packed(0, 3, 1)], children=[pa.array([70, 71, 72], pa.uint16())]
    )


def view() -> pa.Array:
    """Return a text of 50 bytes in the eighth of one buffer."""
    return pa.Array.from_buffers(
        pa.binary_view(), 1, [None, pa.py_buffer(struct.pack("<i4sii", 50, b"abcd", 7, 0)), pa.py_buffer(b"x" * 10)]
    )


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(columns)


@pytest.mark.parametrize("content", [texts, view])
@pytest.mark.parametrize(
    "call",
    [
        lambda content: cppmill_core.digest_contents(content),
        lambda content: cppmill_core.corpus_digest_sum(content, content, content),
        lambda content: cppmill_core.WordCounter("cpp-words-1").add(batch(content=content)),
        lambda content: cppmill_core.Scanner(SCAN).add(batch(project=pa.array(["p"] * len(content)), content=content)),
        lambda content: cppmill_core.json_rows(batch(content=content)),
        lambda content: list(cppmill_core.read_files(b"/", content, pa.array([1] * len(content)), max_bytes=1)),
    ],
)
def test_texts_out_of_order_are_refused(call: Callable[[pa.Array], object], content: Callable[[], pa.Array]) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="malformed Arrow data"):
        call(content())


def test_names_of_projects_out_of_order_are_refused() -> None:
    documents = batch(project=texts(pa.string()), content=pa.array([b"a", b"b"]))
    with pytest.raises(cppmill_core.InvalidInputError, match="malformed Arrow data"):
        cppmill_core.Scanner(SCAN).add(documents)


def test_lists_of_ids_out_of_order_are_refused(directory: Path) -> None:
    tokenizer = cppmill_core.Tokenizer.from_dir(directory)
    for call in (tokenizer.decode_batch, tokenizer.digest_batch, tokenizer.byte_offsets):
        with pytest.raises(cppmill_core.InvalidInputError, match="malformed Arrow data"):
            call(lists())


@pytest.mark.parametrize(("kind", "width"), [(pa.list_, "i"), (pa.large_list, "q")])
def test_the_offset_of_no_lists_leads_nowhere(directory: Path, kind: Kind, width: str) -> None:
    offsets = pa.py_buffer(struct.pack(f"<{width}", 7))
    ids = pa.Array.from_buffers(kind(pa.uint16()), 0, [None, offsets], children=[pa.array([70], pa.uint16())])
    ids.validate(full=True)
    tokenizer = cppmill_core.Tokenizer.from_dir(directory)
    for call in (tokenizer.decode_batch, tokenizer.digest_batch, tokenizer.byte_offsets):
        assert len(call(ids)) == 0


@pytest.mark.parametrize("is_chunked", [False, True])
def test_lists_of_one_size_without_all_their_values_are_refused(directory: Path, is_chunked: bool) -> None:
    ids = pa.Array.from_buffers(pa.list_(pa.uint16(), 3), 1, [None], 0, 3, [pa.array(range(8), pa.uint16())])
    ids.validate(full=True)
    tokenizer = cppmill_core.Tokenizer.from_dir(directory)
    for call in (tokenizer.encode_batch, tokenizer.decode_batch, cppmill_core.digest_contents):
        with pytest.raises(cppmill_core.InvalidInputError, match="a list of fixed size lacks values"):
            call(pa.chunked_array([ids]) if is_chunked else ids)


def test_a_batch_of_a_reader_is_checked_as_it_is_read() -> None:
    rows = batch(word=texts(), count=pa.array([1, 1], pa.uint64()))
    with pytest.raises(OSError, match="run 0: .*offset"):
        cppmill_core.merge_words([pa.RecordBatchReader.from_batches(rows.schema, [rows])]).read_all()


def test_an_array_is_no_list_of_paths_and_is_not_iterated_before_it_is_checked(directory: Path) -> None:
    tokenizer = cppmill_core.Tokenizer.from_dir(directory)
    for call in (tokenizer.encode_files, lambda paths: cppmill_core.list_folders(b"/", paths)):
        with pytest.raises(cppmill_core.InvalidInputError, match="malformed Arrow data"):
            call(texts(pa.string()))  # type: ignore[arg-type]  # no list of paths
        with pytest.raises(TypeError):
            call(pa.array(["a"]))  # type: ignore[arg-type]  # no list of paths


class Imported:
    """Data of a library that offers the C data interface, but cannot check itself."""

    def __init__(self, data: pa.Array) -> None:
        self.data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.data.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("content", [texts, view])
def test_data_that_cannot_check_itself_is_checked_too(directory: Path, content: Callable[[], pa.Array]) -> None:
    tokenizer = cppmill_core.Tokenizer.from_dir(directory)
    for call in (tokenizer.encode_batch, tokenizer.count_batch, tokenizer.count_control, cppmill_core.digest_contents):
        with pytest.raises(cppmill_core.InvalidInputError, match="malformed Arrow data"):
            call(Imported(content()))
        call(Imported(pa.array([b"int x;"])))


def test_lists_that_cannot_check_themselves_are_checked_too(directory: Path) -> None:
    tokenizer = cppmill_core.Tokenizer.from_dir(directory)
    for call in (tokenizer.decode_batch, tokenizer.digest_batch, tokenizer.byte_offsets):
        with pytest.raises(cppmill_core.InvalidInputError, match="malformed Arrow data"):
            call(Imported(lists()))
