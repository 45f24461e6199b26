"""Any stretch of a split's stream, read by itself, is what the whole stream has there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import IntegrityError
from schemas.tables import tokens_schema
from transforms.exports.shards.splits import SPLITS, split_of
from transforms.exports.shards.streams import Borders, StreamSettings, border_ids, read_stretches

BOS, EOS = 1, 2
SCHEMA = tokens_schema(100, prefix=False)
TEXTS = st.lists(st.lists(st.integers(3, 99), min_size=1, max_size=9), min_size=1, max_size=20)


def rows_of(texts: list[list[int]], *, bos: bool, eos: bool) -> pa.RecordBatch:
    """Rows of a token shard: documents of alternating projects."""
    ids = [[BOS] * bos + text + [EOS] * eos for text in texts]
    columns: dict[str, Any] = {
        "doc_id": [f"{number:064x}" for number in range(len(texts))],
        "project": [f"project-{number // 2 % 5}" for number in range(len(texts))],
        "path": [f"{number}.h" for number in range(len(texts))],
        "num_bytes": [len(text) for text in texts],
        "num_tokens": [len(document) for document in ids],
        "token_ids": ids,
        "platform_ids": [[]] * len(texts),
        "platform_info": ["{}"] * len(texts),
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def borders(wanted: Any, *, bos: bool, eos: bool) -> Borders:
    added = BOS if wanted == "document" and not bos else None
    return Borders(wanted=wanted, bos=BOS if bos else None, eos=EOS if eos else None, added=added)


def expected(text: list[int], wanted: str, *, bos: bool, eos: bool) -> list[int]:
    """The ids of a document, as the three policies are described."""
    return {"dataset": [BOS] * bos + text + [EOS] * eos, "document": [BOS, *text], "none": text}[wanted]


@given(TEXTS, st.sampled_from(["dataset", "document", "none"]), st.booleans(), st.booleans())
def test_each_policy_gives_the_ids_that_it_says(texts: list, wanted: str, bos: bool, eos: bool) -> None:
    around = borders(wanted, bos=bos, eos=eos)
    found = border_ids(rows_of(texts, bos=bos, eos=eos), around, where="shard")
    documents = [expected(text, wanted, bos=bos, eos=eos) for text in texts]
    assert found.tolist() == [id_ for document in documents for id_ in document]
    assert len(found) == sum(len(text) + bos + eos + around.more for text in texts)


@pytest.mark.parametrize("around", [borders("none", bos=True, eos=False), borders("none", bos=False, eos=True)])
def test_a_document_without_the_id_that_the_receipt_says_is_refused(around: Borders) -> None:
    with pytest.raises(IntegrityError, match="does not (begin|end) with id"):
        border_ids(rows_of([[7, 8]], bos=False, eos=False), around, where="shard")


@given(
    texts=TEXTS,
    group=st.integers(1, 5),
    split=st.sampled_from(SPLITS),
    by=st.sampled_from(["project", "document"]),
    wanted=st.sampled_from(["dataset", "document", "none"]),
    cuts=st.tuples(st.integers(0, 80), st.integers(1, 80)),
    place=st.integers(0, 50),
)
def test_a_stretch_is_a_part_of_the_stream(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list,
    group: int,
    split: Any,
    by: Any,
    wanted: Any,
    cuts: tuple[int, int],
    place: int,
) -> None:
    path: Path = tmp_path_factory.mktemp("stream") / "shard.parquet"
    rows = rows_of(texts, bos=True, eos=True)
    pq.write_table(pa.Table.from_batches([rows]), path, row_group_size=group)
    names = rows.column("project" if by == "project" else "doc_id").to_pylist()
    stream = [
        (number, id_)
        for number, text in enumerate(texts)
        if split_of(names[number], validation_fraction=0.5) == split
        for id_ in expected(text, wanted, bos=True, eos=True)
    ]
    begin, end = place + cuts[0], place + cuts[0] + cuts[1]
    settings = StreamSettings(
        split=split, split_by=by, validation_fraction=0.5, borders=borders(wanted, bos=True, eos=True)
    )
    with pq.ParquetFile(path) as shard:
        found = list(read_stretches(shard, settings, place=place, begin=begin, end=end, where="shard"))
    part = stream[begin - place : end - place]
    ids = [stretch.ids[max(begin - stretch.begin, 0) : end - stretch.begin] for stretch in found]
    assert np.concatenate([*ids, np.empty(0)]).tolist() == [id_ for _, id_ in part]
    paths = [path for stretch in found for path in stretch.rows.column("path").to_pylist()]
    assert paths == [f"{number}.h" for number in sorted({number for number, _ in part})]
    assert all(len(stretch.ids) == stretch.lengths.sum() for stretch in found)
