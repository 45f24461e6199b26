"""The counts that a build reads are those of a scan."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.stages.build import read_scan_counts
from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder


@pytest.mark.parametrize("names", [["word", "count", "more"], ["word"]])
def test_merged_words_with_other_columns_are_named_before_they_are_read(tmp_path, names):
    path = tmp_path / "counts/words/part-000.parquet"
    path.parent.mkdir(parents=True)
    columns = {"word": pa.array([b"a"]), "count": pa.array([1], pa.uint64()), "more": pa.array([1])}
    pq.write_table(pa.table({name: columns[name] for name in names}), path)
    named = f"/counts/words/part-000.parquet: damaged .its columns are {', '.join(names)}"
    with pytest.raises(IntegrityError, match=named):
        read_scan_counts(OutputFolder(tmp_path), ["counts/words/part-000.parquet"], by_group=False)
