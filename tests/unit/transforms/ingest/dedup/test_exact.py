"""Exact duplicates: the kept copy depends on names and order alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from schemas.options import IngestOptions
from schemas.tables import DUPLICATE_CANDIDATES, DUPLICATES
from transforms.ingest.dedup.exact import choose_kept, has_duplicates, unit_duplicates
from transforms.storage.folder import OutputFolder
from transforms.units.flow import run_flow
from transforms.units.parts import merge_parts, write_parts, write_rows

names = st.sampled_from(["", "a", "b", "A", "\u00e9", "\uff5e", "\U0001f600", "a/b", "a-b"])
rows = st.lists(st.tuples(st.sampled_from("xyz"), names, names, st.integers(0, 3)), max_size=30)


@given(rows, st.randoms(use_true_random=False))
def test_the_smallest_name_is_kept_then_the_first_in_order(found: list[tuple[str, str, str, int]], random: Any) -> None:
    table = [(doc, project, path, unit, row) for row, (doc, project, path, unit) in enumerate(found)]
    copies = defaultdict(list)
    for doc, project, path, unit, row in table:
        copies[doc].append((project.encode(), path.encode(), unit, row))
    expected = sorted((unit, row) for group in copies.values() for _, _, unit, row in sorted(group)[1:])
    random.shuffle(table)
    columns = list(zip(*table, strict=True)) or [()] * 5
    arrays = [pa.array(values, field.type) for values, field in zip(columns, DUPLICATE_CANDIDATES, strict=True)]
    losers = choose_kept(pa.Table.from_arrays(arrays, schema=DUPLICATE_CANDIDATES))
    assert list(zip(*(losers[name].to_pylist() for name in ("unit", "row")), strict=True)) == expected


def test_each_unit_finds_its_own_rows(tmp_path: Path, out: OutputFolder, run_first_pass: Any) -> None:
    for name, content in {"p/a.h": b"1", "p/b.h": b"1", "q/a.h": b"1", "q/b.h": b"2", "q/c.h": b"2"}.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    result = run_first_pass([tmp_path / "in/p", tmp_path / "in/q"], out, IngestOptions())
    name = result.found.duplicates
    assert name
    with out.open_local(name) as path:
        assert unit_duplicates(path, 0).tolist() == [1]
        assert unit_duplicates(path, 1).tolist() == [0, 2]
    assert list(out.files(".cache/duplicates")) == [name]


def test_damaged_duplicates_are_chosen_again(out: OutputFolder) -> None:
    table = pa.table([pa.array(range(2_000), field.type) for field in DUPLICATES], schema=DUPLICATES)
    first = table.slice(0, 1_000)
    list(run_flow(write_parts(out, "parts", DUPLICATES), [(0, batch) for batch in first.to_batches()]))
    merge_parts(out, "parts", DUPLICATES, "whole.parquet")
    data = out.read_bytes("whole.parquet")
    assert has_duplicates("whole.parquet", out)
    for place in range(0, len(data), 29):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        out.publish_bytes("damaged.parquet", bytes(damaged))
        if has_duplicates("damaged.parquet", out):  # what changed is not read
            assert pq.read_table(pa.BufferReader(damaged)).equals(first)
    assert not has_duplicates("none.parquet", out)
    out.publish("fewer.parquet", lambda path: write_rows(path, first.slice(1)))
    assert not has_duplicates("fewer.parquet", out), "whole for Parquet, but not the rows that were merged"
