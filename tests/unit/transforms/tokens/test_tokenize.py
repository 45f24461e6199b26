"""Platform comments name the labels; row groups are cut at the token bound."""

import pyarrow as pa

from transforms.tokens import tokenize
from transforms.tokens.tokenize import bounded_rows, platform_comment


def test_a_platform_comment_lists_each_label_once():
    assert (
        platform_comment('{"gpu":{"cuda":["a"]},"os":{"linux":["b"],"mingw":["c"]},"compiler":{"mingw":["c"]}}')
        == "// platform: cuda, linux, mingw\n"
    )
    assert platform_comment("{}") == ""


def test_the_published_form_has_categories_in_order_and_one_standard():
    info = (
        '{"arch":{"x64":["a"]},"compiler":{"msvc":["a"],"gcc":["b"]},"cpp_std":{"c++11":["a"],"c++98":["b"]},'
        '"gpu":{"cuda":["a"]},"os":{"windows":["a"],"linux":["b"]},"rtos":{"zephyr":["a"]}}'
    )
    assert platform_comment(info, "categories") == (
        "// platform: os=linux,windows rtos=zephyr gpu=cuda arch=x64 compiler=gcc,msvc std=c++11\n"
    )
    assert platform_comment("{}", "categories") == ""
    assert platform_comment('{"cpp_std":{"c++20":["a"]}}', "categories") == "// platform: std=c++20\n"


def test_own_categories_are_before_the_standard_and_an_own_standard_is_the_newest():
    info = (
        '{"board":{"b":["a"],"a":["b"]},"arena":{"x":["a"]},"cpp_std":{"c++26":["a"],"c++29":["b"]},'
        '"os":{"zenos":["a"]}}'
    )
    assert platform_comment(info, "categories") == "// platform: os=zenos arena=x board=a,b std=c++29\n"


def test_a_row_group_holds_no_more_tokens_than_allowed_but_one_document_may(monkeypatch):
    monkeypatch.setattr(tokenize, "MAX_ROW_GROUP_TOKENS", 10)
    lengths = [4, 6, 1, 25, 3, 0, 7]
    pieces = list(bounded_rows(pa.record_batch({"num_tokens": pa.array(lengths, pa.uint64())})))
    assert [piece.column(0).to_pylist() for piece in pieces] == [[4, 6], [1], [25], [3, 0, 7]]
