"""What options enter unit keys and receipts."""

from schemas.options import RunOptions


def test_superwords_that_are_off_leave_no_trace_in_keys_and_receipts() -> None:
    options = RunOptions().to_json()
    assert set(options["scan"]) == {"pattern", "word_partitions"}
    assert not [name for name in options["build"] if "superword" in name]


def test_superwords_that_are_on_are_in_keys_and_receipts() -> None:
    options = RunOptions.model_validate(
        {"scan": {"unit_pattern": "cpp-lines-1"}, "build": {"superwords_after": 0.5}}
    ).to_json()
    assert options["scan"]["unit_pattern"] == "cpp-lines-1"
    bounds = ("superwords_after", "max_superword_words", "max_superword_bytes")
    assert [options["build"][name] for name in bounds] == [0.5, 6, 64]
