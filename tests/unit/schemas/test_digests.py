"""Properties of canonical JSON, digest sums and path fractions."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.digests import add_digests, canonical_json, path_fraction, sha256_file, sha256_json

HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)


@given(st.lists(HEX), st.randoms(use_true_random=False))
def test_the_sum_of_digests_does_not_depend_on_order(digests, random):
    shuffled = list(digests)
    random.shuffle(shuffled)
    assert add_digests(digests) == add_digests(shuffled)


@given(st.lists(HEX, min_size=1), st.integers(min_value=0))
def test_partial_sums_merge(digests, cut):
    cut %= len(digests)
    assert add_digests(digests) == add_digests([add_digests(digests[:cut]), add_digests(digests[cut:])])


def test_the_sum_wraps_at_two_to_the_256():
    assert add_digests(["f" * 64, "0" * 63 + "2"]) == "0" * 63 + "1"


def test_canonical_json_sorts_keys_and_has_no_spaces():
    assert canonical_json({"b": 1, "a": [1.5, "\u20ac"]}) == '{"a":[1.5,"\u20ac"],"b":1}'.encode()


def test_sha256_json_is_the_digest_of_the_canonical_form():
    assert sha256_json({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()


def test_sha256_file_reads_the_bytes(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\x00\xff" * 100_000)
    assert sha256_file(path) == hashlib.sha256(b"\x00\xff" * 100_000).hexdigest()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_path_fraction_lies_in_the_unit_interval(path):
    assert 0.0 <= path_fraction(path) < 1.0


@pytest.mark.parametrize("path", ["a.cpp", "caf\udce9.cpp"])
def test_a_path_fraction_is_the_hash_of_the_raw_bytes(path):
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()
    assert path_fraction(path) == int.from_bytes(digest[:8], "big") / 2**64
