"""What options enter unit keys and receipts."""

import pytest

from schemas.options import NEAR_DUPLICATE_OPTIONS, IngestOptions, RunOptions


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


def test_a_template_is_in_keys_and_receipts_unless_it_is_none() -> None:
    assert "hf_template" not in RunOptions().to_json()["build"]
    options = RunOptions.model_validate({"build": {"hf_template": "bos"}}).to_json()
    assert options["build"]["hf_template"] == "bos"


def test_filters_that_are_off_leave_no_trace_in_keys_and_receipts() -> None:
    assert set(RunOptions().to_json()["ingest"]) == {
        *("extensions", "max_document_bytes", "drop_binary", "drop_duplicates", "drop_generated", "max_line_bytes"),
        *("min_unique_line_ratio", "open_archives", "content_column", "path_column", "project_column"),
        *("license_column", "sample", "limit", "unit_bytes", "max_expansion", "detect_platforms"),
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"unlicensed": "keep"}, {}),
        ({"allowed_licenses": ("MIT",)}, {"allowed_licenses": ["MIT"], "unlicensed": "drop"}),
        ({"drop_minified": True}, {"drop_minified": True}),
        ({"drop_secrets": True}, {"drop_secrets": True}),
        ({"decontaminate_ngram_words": 9}, {}),
        ({"withdrawn": "list.json"}, {"withdrawn": "list.json"}),
        (
            {"decontaminate": ("b.jsonl",)},
            {"decontaminate": ["b.jsonl"], "decontaminate_ngram_words": 13, "decontaminate_min_ngrams": 1},
        ),
    ],
)
def test_filters_that_are_on_are_in_keys_and_receipts(given: dict[str, object], said: dict[str, object]) -> None:
    off = IngestOptions().to_json()
    assert IngestOptions.model_validate(given).to_json() == {**off, **said}


def test_near_duplicates_that_are_not_looked_for_leave_no_trace_in_keys_and_receipts() -> None:
    assert not [name for name in IngestOptions(near_duplicate_tokens=7).to_json() if "near" in name]
    options = IngestOptions(near_duplicate_similarity=0.9).to_json()
    assert [options[name] for name in NEAR_DUPLICATE_OPTIONS] == [0.9, 5, 256]
