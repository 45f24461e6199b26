from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
import tokenizers
from cppmill_core import Tokenizer
from cppmill_core.byte_tables import DUMMY_PREFIX, EXACT, ByteTables, bits_per_byte, bits_per_character
from hypothesis import given
from hypothesis import strategies as st

MARKER = "\u2581"
CONVENTIONS = {EXACT: False, DUMMY_PREFIX: True}
HARD_TEXTS = ["", " ", "  x", "x", "\t\tx\n", "é", "日本 \ufffd", "\r\n", "a" * 100, "/* ß */ int  x;"]

COMMENTS = """// 字句解析器: 次のトークンを返す 🚀
int 次(const char* p);  // 한국어 주석, 中文注释 👩‍👩‍👧 🇩🇪
/* naïve Größe — “quoted” ✅ */ auto s = u8"日本語 ½ 😀";
"""


@pytest.fixture(scope="session")
def texts(headers: list[bytes]) -> list[str]:
    """Real C++ that is UTF-8."""
    return [content.decode() for content in headers[::4] if content.isascii()]


@pytest.fixture(scope="session")
def foreign_texts() -> list[str]:
    """Real headers of this machine that are UTF-8 and not ASCII, and a text with CJK and emoji in its comments."""
    found = [COMMENTS]
    for root in (Path("/usr/include"), Path(np.__file__).parents[1]):
        for path in sorted(root.rglob("*.h*")):
            if path.suffix not in (".h", ".hpp", ".hh") or not path.is_file() or path.stat().st_size > 200_000:
                continue
            content = path.read_bytes()
            if content.isascii() or MARKER.encode() in content or b"\0" in content:
                continue
            with contextlib.suppress(UnicodeDecodeError):
                found.append(content.decode())
    return found[:40]


@pytest.fixture(scope="session")
def train(texts: list[str]) -> Callable[..., sentencepiece.SentencePieceProcessor]:
    """Train a SentencePiece model, lossless unless options say otherwise; each is trained once."""

    @functools.cache
    def run(**options: Any) -> sentencepiece.SentencePieceProcessor:
        lossless = {
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "allow_whitespace_only_pieces": True,
            "split_by_whitespace": False,
            "byte_fallback": True,
            "character_coverage": 0.9999,
        }
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line for text in texts[:12] for line in text.split("\n")]),
            model_writer=model,
            model_type="bpe",
            vocab_size=1200,
            minloglevel=2,
            **(lossless | options),
        )
        return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    return run


@pytest.fixture(scope="session", params=CONVENTIONS)
def processor(request: pytest.FixtureRequest, train: Any) -> sentencepiece.SentencePieceProcessor:
    """A model of each convention."""
    return train(add_dummy_prefix=CONVENTIONS[request.param])


@pytest.fixture(scope="session")
def tables(tokenizer: Tokenizer) -> ByteTables:
    return ByteTables.of(tokenizer)


def published(processor: sentencepiece.SentencePieceProcessor) -> tuple[list[int], list[bool], list[bool]]:
    """The tables by the published rules, one piece after another."""
    base, leading, boundary = [], [], []
    for id_ in range(processor.vocab_size()):
        piece = processor.id_to_piece(id_)
        no_text = processor.is_control(id_) or processor.is_unknown(id_) or processor.is_unused(id_)
        byte = processor.is_byte(id_)
        marked = piece.startswith(MARKER) and not no_text and not byte
        boundary.append(no_text)
        leading.append(marked)
        base.append(0 if no_text else 1 if byte else len(piece[marked:].encode()))
    return base, leading, boundary


def test_the_bytes_of_every_document_are_counted(
    tokenizer: Tokenizer, tables: ByteTables, headers: list[bytes]
) -> None:
    documents = [*headers, b"", bytes(range(256)), "\ufffd é".encode(), b"<EOS>"]
    bos, eos = tokenizer.control_id("<BOS>"), tokenizer.control_id("<EOS>")
    lists = tokenizer.encode_batch(documents, bos=bos, eos=eos)
    assert tables.count_documents(lists).tolist() == [len(document) for document in documents]
    assert [tables.count_bytes(ids.values) for ids in lists] == [len(document) for document in documents]
    assert (tables.convention, tables.tokenizer, tables.vocab_size) == (EXACT, tokenizer.digest, tokenizer.vocab_size)


def test_control_and_reserved_ids_are_boundaries_without_bytes(tokenizer: Tokenizer, tables: ByteTables) -> None:
    none = [id_ for id_ in range(tokenizer.vocab_size) if tokenizer.token_bytes(id_) is None]
    assert np.flatnonzero(tables.is_boundary).tolist() == none
    assert len(none) == 9
    assert not tables.base_bytes[none].any()
    assert not tables.has_leading_space.any()


def test_sentencepiece_counts_the_bytes_of_every_document(
    processor: sentencepiece.SentencePieceProcessor, texts: list[str]
) -> None:
    tables = ByteTables.of_sentencepiece(processor)
    for text in [*texts, *HARD_TEXTS]:
        assert tables.count_bytes(processor.encode(text)) == len(text.encode())
        assert tables.count_bytes(processor.encode(text, add_bos=True, add_eos=True)) == len(text.encode())
    lists = pa.array([processor.encode(text) for text in [*HARD_TEXTS, *texts]], pa.list_(pa.int32()))
    expected = [len(text.encode()) for text in [*HARD_TEXTS, *texts]]
    assert tables.count_documents(lists).tolist() == expected
    assert tables.count_documents(pa.chunked_array([lists[:3], lists[3:]])).tolist() == expected
    assert tables.count_documents(lists[2:5]).tolist() == expected[2:5]


def test_sentencepiece_counts_the_bytes_of_real_headers_that_are_not_ascii(
    processor: sentencepiece.SentencePieceProcessor, foreign_texts: list[str]
) -> None:
    assert len(foreign_texts) > 1, "no header on this machine that is UTF-8 and not ASCII"
    tables = ByteTables.of_sentencepiece(processor)
    for text in foreign_texts:
        assert tables.count_bytes(processor.encode(text)) == len(text.encode()) > len(text)
    lists = pa.array([processor.encode(text) for text in foreign_texts], pa.list_(pa.int32()))
    assert tables.count_documents(lists).tolist() == [len(text.encode()) for text in foreign_texts]


def test_the_tables_are_the_published_ones_where_no_marker_is_inside_a_piece(train: Any) -> None:
    model = train(add_dummy_prefix=True, split_by_whitespace=True, allow_whitespace_only_pieces=False)
    tables = ByteTables.of_sentencepiece(model)
    assert tables.convention == DUMMY_PREFIX
    found = (tables.base_bytes.tolist(), tables.has_leading_space.tolist(), tables.is_boundary.tolist())
    assert found == published(model)


@given(st.text(st.characters(exclude_characters=[MARKER, "\x00"], exclude_categories=["Cs"])))
def test_sentencepiece_counts_the_bytes_of_any_text(processor: sentencepiece.SentencePieceProcessor, text: str) -> None:
    tables = ByteTables.of_sentencepiece(processor)
    assert tables.count_bytes(processor.encode(text)) == len(text.encode())


def test_the_convention_is_that_of_the_model(train: Any) -> None:
    for convention, dummy_prefix in CONVENTIONS.items():
        tables = ByteTables.of_sentencepiece(train(add_dummy_prefix=dummy_prefix))
        assert tables.convention == convention
        assert tables.has_leading_space.any() == dummy_prefix
    with pytest.raises(cppmill_core.InvalidInputError, match="behind words"):
        ByteTables.of_sentencepiece(train(treat_whitespace_as_suffix=True))


def test_the_first_space_counts_only_where_it_is_in_the_text(train: Any) -> None:
    for convention, dummy_prefix in CONVENTIONS.items():
        model = train(add_dummy_prefix=dummy_prefix)
        tables = ByteTables.of_sentencepiece(model)
        (return_,) = [id_ for id_ in range(model.vocab_size()) if model.id_to_piece(id_) == MARKER + "return"]
        at_start = len("return") if convention == DUMMY_PREFIX else len(" return")
        assert tables.count_bytes([return_]) == at_start
        assert tables.count_bytes([return_], previous=model.bos_id()) == at_start
        assert tables.count_bytes([return_], previous=return_) == len(" return")


class TestTraps:
    """Ways to count that look right but are not: each test makes the wrong count, and the tables give the right one."""

    def test_the_marker_that_decoding_takes_away(self, train: Any) -> None:
        model = train(add_dummy_prefix=True)
        ids = model.encode("int a; int b; int c;")
        assert sum(len(model.decode([id_]).encode()) for id_ in ids) < 20
        assert ByteTables.of_sentencepiece(model).count_bytes(ids) == 20

    def test_markers_inside_a_piece_are_spaces_not_three_bytes(self, train: Any) -> None:
        model = train(add_dummy_prefix=True)
        ids = model.encode("x;\n        return y;")
        base, leading, boundary = (np.array(table) for table in published(model))
        known = base[ids] + (leading[ids] & ~boundary[[model.bos_id(), *ids[:-1]]])
        assert known.sum() > 20
        assert ByteTables.of_sentencepiece(model).count_bytes(ids) == 20

    def test_a_byte_token_is_one_byte(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        ids = [id_ for id_ in processor.encode("日本") if processor.is_byte(id_)]
        assert len(ids) == 6
        assert {len(processor.id_to_piece(id_)) for id_ in ids} == {6}
        assert {len(processor.decode([id_]).encode()) for id_ in ids} == {3}
        assert ByteTables.of_sentencepiece(processor).token_num_bytes(ids).tolist() == [1] * 6

    def test_a_part_of_a_character_is_not_the_replacement_character(self, directory: Path, tables: ByteTables) -> None:
        library = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        text = "日本語の文字"
        ids = library.encode(text).ids
        assert sum(len(library.decode([id_]).encode()) for id_ in ids) == 3 * len(ids) > len(text.encode())
        assert tables.count_bytes(ids) == len(text.encode())

    def test_the_replacement_character_itself_is_three_bytes(
        self, tokenizer: Tokenizer, tables: ByteTables, processor: sentencepiece.SentencePieceProcessor
    ) -> None:
        assert tables.count_bytes(tokenizer.encode("\ufffd")) == 3
        assert ByteTables.of_sentencepiece(processor).count_bytes(processor.encode("\ufffd")) == 3


class TestCounting:
    """Shapes and invalid ids."""

    def test_the_previous_ids_may_have_any_shape(self, train: Any, texts: list[str]) -> None:
        model = train(add_dummy_prefix=True)
        tables = ByteTables.of_sentencepiece(model)
        ids = np.array(model.encode(texts[0], add_bos=True)[:801])
        inputs, targets = ids[:-1].reshape(8, -1), ids[1:].reshape(8, -1)
        whole = tables.token_num_bytes(ids)[1:].reshape(8, -1)
        assert np.array_equal(tables.token_num_bytes(targets, inputs), whole)
        assert np.array_equal(tables.token_num_bytes(targets, inputs[:, 0]), whole)
        assert tables.count_bytes(pa.array(ids[1:]), previous=int(ids[0])) == whole.sum()

    def test_documents_that_are_empty_have_no_bytes(self, tables: ByteTables) -> None:
        lists = pa.array([[], [9, 10], [], []], pa.list_(pa.uint16()))
        assert tables.count_documents(lists).tolist() == [0, 2, 0, 0]
        assert tables.count_documents(lists[:0]).tolist() == []
        assert tables.count_bytes([]) == 0

    @pytest.mark.parametrize(("ids", "said"), [([-1], "id -1"), ([10**6], "id 1000000"), ([0.5], "float64")])
    def test_invalid_ids_are_refused(self, tables: ByteTables, ids: list[Any], said: str) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match=said):
            tables.count_bytes(ids)

    def test_tokens_beyond_int16_are_refused(self) -> None:
        class Long:
            vocab_size, digest = 2, ""

            def token_bytes(self, id: int) -> bytes:
                return b" " * (32_767 + id)

        with pytest.raises(cppmill_core.InvalidInputError, match="id 1: 32,768 bytes; .* up to 32,767"):
            ByteTables.of(Long())


def copied(tables: ByteTables, rows: int | None = None) -> ByteTables:
    """Return the same tables, or their first rows, which a test may change."""
    arrays = {name: getattr(tables, name)[:rows].copy() for name in ("base_bytes", "has_leading_space", "is_boundary")}
    return replace(tables, **arrays)


class TestFiles:
    """An .npz file with the tokenizer's digest."""

    def test_tables_are_read_back(self, tables: ByteTables, tokenizer: Tokenizer, tmp_path: Path) -> None:
        tables.save(tmp_path / "a.npz")
        found = ByteTables.load(tmp_path / "a.npz", tokenizer=tokenizer)
        for name in ("base_bytes", "has_leading_space", "is_boundary"):
            ours, theirs = getattr(tables, name), getattr(found, name)
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)
        assert (found.tokenizer, found.convention) == (tables.tokenizer, tables.convention)
        found.save(tmp_path / "b.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()

    def test_plain_numpy_reads_them_as_published(self, tables: ByteTables, tmp_path: Path) -> None:
        tables.save(tmp_path / "a.npz")
        with np.load(tmp_path / "a.npz") as file:
            assert [str(file[name].dtype) for name in ("base_bytes", "has_leading_space", "is_boundary")] == [
                *("int16", "bool", "bool")
            ]
            assert str(file["tokenizer"]) == tables.tokenizer

    def test_a_model_file_is_known_by_its_digest(
        self, processor: sentencepiece.SentencePieceProcessor, tmp_path: Path
    ) -> None:
        file = tmp_path / "a.model"
        file.write_bytes(processor.serialized_model_proto())
        made = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout.split()[0]
        tables = ByteTables.of_sentencepiece(file)
        assert made == tables.tokenizer == ByteTables.of_sentencepiece(processor).tokenizer

    def test_tables_of_another_tokenizer_are_refused(self, tables: ByteTables, tmp_path: Path) -> None:
        tables.save(tmp_path / "a.npz")
        with pytest.raises(cppmill_core.InvalidInputError, match=rf"of tokenizer {tables.tokenizer}, not of ab;"):
            ByteTables.load(tmp_path / "a.npz", tokenizer="ab")

    @pytest.mark.parametrize(
        "changes",
        [{"format": "other"}, {"convention": "guess"}, {"base_bytes": np.zeros(3)}, {"is_boundary": np.zeros(3, bool)}],
        ids=str,
    )
    def test_other_files_are_refused(self, tables: ByteTables, tmp_path: Path, changes: dict[str, Any]) -> None:
        tables.save(tmp_path / "a.npz")
        with np.load(tmp_path / "a.npz") as file:
            np.savez(tmp_path / "a.npz", **({name: file[name] for name in file.files} | changes))
        with pytest.raises(cppmill_core.CorruptDataError, match=r"a\.npz: not byte tables .*; write them again"):
            ByteTables.load(tmp_path / "a.npz")

    @pytest.mark.parametrize(
        ("name", "row", "value"),
        [("base_bytes", 300, -5), ("is_boundary", 300, True), ("has_leading_space", 300, True)],
    )
    def test_numbers_that_no_tokenizer_gives_are_refused(
        self, tables: ByteTables, tmp_path: Path, name: str, row: int, value: int
    ) -> None:
        getattr(false := copied(tables), name)[row] = value
        false.save(tmp_path / "a.npz")
        with pytest.raises(cppmill_core.CorruptDataError, match="not byte tables"):
            ByteTables.load(tmp_path / "a.npz")

    def test_tables_that_the_tokenizer_does_not_give_are_refused(
        self, tables: ByteTables, tokenizer: Tokenizer, tmp_path: Path
    ) -> None:
        false, short = copied(tables), copied(tables, 100)
        false.base_bytes[300] += 1
        for wrong in (false, short):
            wrong.save(tmp_path / "a.npz")
            with pytest.raises(cppmill_core.CorruptDataError, match="not the byte tables that the tokenizer gives"):
                ByteTables.load(tmp_path / "a.npz", tokenizer=tokenizer)

    def test_one_array_is_refused(self, tmp_path: Path) -> None:
        with (tmp_path / "a.npz").open("wb") as file:
            np.save(file, np.zeros(3))
        with pytest.raises(cppmill_core.CorruptDataError, match="not byte tables"):
            ByteTables.load(tmp_path / "a.npz")

    @pytest.mark.parametrize(("text", "other"), [(b"), }", b" , }"), (b"'shape'", b"\"shape'")], ids=str)
    def test_a_header_that_is_no_python_is_refused(
        self, tables: ByteTables, tmp_path: Path, text: bytes, other: bytes
    ) -> None:
        tables.save(tmp_path / "a.npz")
        with zipfile.ZipFile(tmp_path / "a.npz") as file:
            members = {name: file.read(name).replace(text, other, 1) for name in file.namelist()}
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
            for name, data in members.items():
                file.writestr(name, data)
        with pytest.raises(cppmill_core.CorruptDataError, match="not byte tables"):
            ByteTables.load(tmp_path / "a.npz")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text"])
    def test_damaged_files_are_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(cppmill_core.CorruptDataError, match="not byte tables"):
            ByteTables.load(tmp_path / "a.npz")


def test_a_uniform_model_needs_eight_bits_per_byte() -> None:
    assert math.isclose(bits_per_byte(math.log(256), tokens=10, num_bytes=10), 8.0)
    assert math.isclose(bits_per_byte(math.log(65536), tokens=10, num_bytes=40), 4.0)
    assert math.isclose(bits_per_character(math.log(256), tokens=30, num_characters=10), 24.0)
    with pytest.raises(cppmill_core.InvalidInputError, match="0 bytes"):
        bits_per_byte(1.0, tokens=0, num_bytes=0)


def test_sentencepiece_is_imported_only_for_its_models() -> None:
    script = "import sys, cppmill_core.byte_tables; assert not {'sentencepiece', 'apache_beam'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert importlib.util.find_spec("sentencepiece")
