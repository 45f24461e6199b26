"""The dataset card: what the Hub reads of it, whatever projects and licences are called."""

from __future__ import annotations

from typing import Any

import pytest
from huggingface_hub import DatasetCardData
from huggingface_hub.repocard import RepoCard
from markdown_it import MarkdownIt

from pipelines.publish.card import MOST_PROJECTS, hub_licenses, render_card, size_category
from transforms.records.croissant import Publication

RECEIPT: dict[str, Any] = {
    "digest": "d",
    "code": {"cppmill": "1"},
    "configs": {"tokenize": {"platform_prefix": True}},
    "corpus": {"digest": "d"},
    "dataset": {"digest": "d", "documents": 3, "tokens": 5, "bytes": 9},
    "ledger": {
        "documents": {"in": 4, "kept": 3, "empty": 0, "duplicate": 0, "filtered": {"size": 1}, "dead": {}},
        "bytes": {"in": 20, "kept": 9, "empty": 0, "duplicate": 0, "filtered": {"size": 11}, "dead": {}},
    },
    "policy": {"bos": True, "eos": False},
    "tokenizer": {"digest": "d", "revision": "1.0", "vocab_size": 70_000},
}
MANIFEST = {"vocab_size": 70_000, "tokens": [1, 2], "pattern": "cpp-words-1"}


def card(licenses, name="n"):
    return render_card(RECEIPT, MANIFEST, Publication(name=name), licenses)


@pytest.mark.parametrize(
    ("rows", "category"),
    [(0, "n<1K"), (1000, "1K<n<10K"), (999_999_999, "100M<n<1B"), (10**12, "n>1T")],
)
def test_size_categories_are_those_of_the_hub(rows, category):
    assert size_category(rows) == category


@pytest.mark.parametrize(
    ("licenses", "names"),
    [
        ({}, ["unknown"]),
        ({("a", None): 1}, ["unknown"]),
        ({("a", "MIT"): 1, ("b", "GPL-2.0-or-later"): 1, ("b", "Weird-1"): 2}, ["gpl-2.0", "mit", "other"]),
    ],
)
def test_licences_are_those_that_the_hub_knows(licenses, names):
    assert hub_licenses(licenses) == names


def test_the_front_matter_holds_any_name():
    name = 'a: "b"\n---\n<c>'
    data = RepoCard(card({}, name)).data
    assert isinstance(data.to_dict(), dict)
    assert DatasetCardData(**data.to_dict()).pretty_name == name


def test_names_are_text_and_not_markdown():
    hostile = "a|b\n<script>alert(1)</script> [x](javascript:y) `z`"
    html = MarkdownIt("commonmark").enable("table").render(card({(hostile, "MIT | x"): 3}).split("---", 2)[2])
    assert "<script>" not in html
    assert "<a " not in html
    assert "<td>a|b &lt;script&gt;alert(1)&lt;/script&gt; [x](javascript:y) `z`</td>" in html
    assert "<td>MIT | x (3)</td>" in html


def test_many_projects_are_cut_and_counted():
    text = card({(f"p{number}", "MIT"): 1 for number in range(MOST_PROJECTS + 7)})
    assert text.count(" | MIT (1) |") == MOST_PROJECTS
    assert "And 7 projects of fewer documents" in text


def test_columns_are_those_of_the_run():
    assert "| `prefix_token_ids` | list of uint32 |" in card({})


def test_a_card_of_no_documents_names_no_files_to_load():
    empty = {**RECEIPT, "dataset": {**RECEIPT["dataset"], "documents": 0}}
    text = render_card(empty, MANIFEST, Publication(name="n"), {})
    assert "configs" not in RepoCard(text).data.to_dict()
    assert "nothing to load" in text
    assert "load_dataset" not in text


def test_a_card_says_whether_other_libraries_add_bos_and_eos():
    said = "`tokenizers` and `transformers` add neither to a text"
    assert said in card({})
    templated = render_card(RECEIPT, {**MANIFEST, "hf_template": "bos-eos"}, Publication(name="n"), {})
    assert said not in templated
    assert said not in render_card(RECEIPT, {**MANIFEST, "kind": "huggingface"}, Publication(name="n"), {})
