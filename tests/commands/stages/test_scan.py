"""The receipt of the merged counts is found by what it commits."""

import shutil

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages.scan_receipts import split_receipts
from pipelines.stages.session import open_session
from schemas.errors import IntegrityError
from schemas.units import OutputFile, Stage, UnitReceipt


def receipt(key, path):
    output = OutputFile(path=path, sha256="", num_bytes=0, rows=0)
    return UnitReceipt(stage=Stage.SCAN, key=key, outputs=(output,), totals={})


SHARDS = [receipt("1", "counts/parts/words-1.parquet"), receipt("2", "counts/parts/words-2.parquet")]
MERGED = receipt("0", "counts/words/part-000.parquet")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_merged_counts_are_found_in_any_order(place):
    found = split_receipts([*SHARDS[:place], MERGED, *SHARDS[place:]], where="out")
    assert (found.shards, found.merged) == (SHARDS, MERGED)


@pytest.mark.parametrize("merged", [[], [MERGED, receipt("3", "counts/terms.parquet")]])
def test_counts_that_are_not_merged_once_are_reported(merged):
    with pytest.raises(IntegrityError, match=f"{len(merged)} receipts of merged counts.*run `cppmill scan` again"):
        split_receipts([*SHARDS, *merged], where="out")


def test_the_merged_counts_of_a_copy_without_cache_are_found(copied_run):
    config = load_run_config(flags={"--out": str(copied_run.out)})
    with open_session(config, Reporters()) as session:
        expected = split_receipts(session.current(Stage.SCAN), where="out")
    shutil.rmtree(copied_run.out / ".cache")
    with open_session(config, Reporters()) as session:
        found = split_receipts(session.current(Stage.SCAN), where="out")
    assert found.merged == expected.merged
    assert sorted(shard.key for shard in found.shards) == sorted(shard.key for shard in expected.shards)
