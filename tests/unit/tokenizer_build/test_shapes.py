from __future__ import annotations

import pytest

from tokenizer_build.shapes import Shape, is_plain_word, name_parts, name_shape


@pytest.mark.parametrize(
    ("token", "prefixes", "shape"),
    [
        ("__global__", [], Shape.DOUBLE_UNDERSCORE),
        ("a__b", [], Shape.DOUBLE_UNDERSCORE),
        ("EXPECT_EQ", [], Shape.SCREAMING_CASE),
        ("BOOST_TEST2_A", [], Shape.SCREAMING_CASE),
        ("TEST", [], Shape.NONE),
        ("_TEST", [], Shape.NONE),
        ("Test_Case", [], Shape.COMPOUND),
        ("cudaMalloc", ["cuda"], Shape.API_PREFIX),
        ("cuda", ["cuda"], Shape.NONE),
        ("cudamalloc", ["cuda"], Shape.NONE),
        ("cudaMalloc", ["nccl"], Shape.COMPOUND),
        ("sqlite3_step", ["sqlite3_"], Shape.API_PREFIX),
        ("SQLExecute", ["SQL"], Shape.API_PREFIX),
        ("hipblasCreate", ["rocblas_", "hipblas"], Shape.API_PREFIX),
        ("thread_block_tile", [], Shape.COMPOUND),
        ("DescriptorPool", [], Shape.COMPOUND),
        ("threadIdx", [], Shape.COMPOUND),
        ("SQLExecute", [], Shape.COMPOUND),
        ("device_vector", ["device_"], Shape.API_PREFIX),
        ("size_t", [], Shape.NONE),
        ("mValue", [], Shape.NONE),
        ("dim3", [], Shape.NONE),
        ("float16", [], Shape.NONE),
        ("Descriptor", [], Shape.NONE),
        ("query", [], Shape.NONE),
        ("$graphLookup", [], Shape.NONE),
        ("#pragma once", [], Shape.NONE),
    ],
)
def test_the_shape_of_a_name(token: str, prefixes: list[str], shape: Shape) -> None:
    assert name_shape(token, prefixes) is shape


def test_a_shape_that_is_not_asked_for_gives_way_to_the_next() -> None:
    assert name_shape("CUDA_CHECK__", [], shapes=["api_prefix", "compound"]) is Shape.COMPOUND
    assert name_shape("CUDA_CHECK__", ["CUDA"], shapes=["api_prefix", "compound"]) is Shape.API_PREFIX
    assert name_shape("CUDA_CHECK__", [], shapes=[]) is Shape.NONE


def test_a_compound_has_as_many_words_as_asked_for() -> None:
    shapes = [name_shape(name, [], compound_parts=3) for name in ("thread_block_tile", "device_vector", "ThreadBlock")]
    assert shapes == [Shape.COMPOUND, Shape.NONE, Shape.NONE]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("thread_block_tile", ["thread", "block", "tile"]),
        ("XMLHttpRequest2", ["XML", "Http", "Request"]),
        ("__half2float", ["half", "float"]),
        ("m_x", []),
        ("std::vector", []),
        ("", []),
    ],
)
def test_the_parts_of_a_name_are_its_words(name: str, parts: list[str]) -> None:
    assert name_parts(name) == parts


@pytest.mark.parametrize(
    ("name", "is_plain"),
    [("stride", True), ("Message", True), ("T", False), ("DWORD", False), ("dim3", False), ("sub_mat", False)]
    + [("GLuint", False), ("iT", False), ("", False)],
)
def test_a_plain_word_has_small_letters_and_a_capital_before_them_at_most(name: str, is_plain: bool) -> None:
    assert is_plain_word(name) is is_plain
