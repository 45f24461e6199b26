"""Platform comments name the labels; row groups are cut at the token bound."""

import pyarrow as pa

from transforms.tokens import tokenize
from transforms.tokens.tokenize import _bounded, platform_comment


def test_a_platform_comment_lists_each_label_once():
    assert (
        platform_comment('{"gpu":{"cuda":["a"]},"os":{"linux":["b"],"mingw":["c"]},"compiler":{"mingw":["c"]}}')
        == "// platform: cuda, linux, mingw\n"
    )
    assert platform_comment("{}") == ""


def test_a_row_group_holds_no_more_tokens_than_allowed_but_one_document_may(monkeypatch):
    monkeypatch.setattr(tokenize, "MAX_ROW_GROUP_TOKENS", 10)
    lengths = [4, 6, 1, 25, 3, 0, 7]
    pieces = list(_bounded(pa.record_batch({"num_tokens": pa.array(lengths, pa.uint64())})))
    assert [piece.column(0).to_pylist() for piece in pieces] == [[4, 6], [1], [25], [3, 0, 7]]
