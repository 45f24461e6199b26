"""BOS and EOS are put around documents and taken off again exactly; platform comments name the labels."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import IntegrityError
from transforms.tokenize import platform_comment, surround
from transforms.validate import strip

LISTS = st.lists(st.lists(st.integers(0, 65535), max_size=6), max_size=8)
POLICY = st.tuples(st.sampled_from([None, 2]), st.sampled_from([None, 3]))


def ids(lists):
    return pa.array(lists, pa.list_(pa.uint16()))


@given(LISTS, POLICY)
def test_surrounding_puts_each_marker_once(lists, policy):
    bos, eos = policy
    before, after = [x for x in [bos] if x is not None], [x for x in [eos] if x is not None]
    assert surround(ids(lists), bos=bos, eos=eos).to_pylist() == [[*before, *one, *after] for one in lists]


@given(LISTS, POLICY, st.integers(0, 3))
def test_stripping_undoes_surrounding_on_slices_too(lists, policy, start):
    bos, eos = policy
    around = surround(ids(lists).slice(start), bos=bos, eos=eos)
    assert strip(around, bos=bos, eos=eos, where="here").to_pylist() == lists[start:]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[2, 5, 4]], "row 0 has id 4 where EOS"),
        ([[2, 3], [9, 5, 3]], "row 1 has id 9 where BOS"),
        ([[2]], "shorter than its BOS and EOS"),
    ],
)
def test_a_missing_marker_is_named(lists, message):
    with pytest.raises(IntegrityError, match=message):
        strip(ids(lists), bos=2, eos=3, where="here")


def test_a_platform_comment_lists_each_label_once():
    assert (
        platform_comment('{"gpu":{"cuda":["a"]},"os":{"linux":["b"],"mingw":["c"]},"compiler":{"mingw":["c"]}}')
        == "// platform: cuda, linux, mingw\n"
    )
    assert platform_comment("{}") == ""
