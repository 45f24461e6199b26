"""The kinds of object stores are known in one place, and other URLs are refused with the kinds that there are."""

import pytest

from schemas.errors import ConfigError
from schemas.places import OUTPUT_PACKAGES
from transforms.storage.folder import OutputFolder
from transforms.storage.protocol import is_keyed
from transforms.storage.urls import OBJECTS


def test_each_kind_of_object_store_has_a_class_and_a_package():
    assert OBJECTS.keys() == OUTPUT_PACKAGES.keys()


def test_the_url_of_an_unknown_kind_of_store_is_refused():
    with pytest.raises(ConfigError, match="ftp://host/out: not supported; it takes a path or s3://, gs://"):
        OutputFolder("ftp://host/out")


@pytest.mark.parametrize("folder", ["documents", "counts/parts", "tokens", "proofs", "shards", "sequences"])
def test_names_with_the_key_of_a_unit_are_known(folder):
    assert is_keyed(f"{folder}/part-{64 * 'a'}.parquet")
    assert not is_keyed(f"{folder}/part-{63 * 'a'}.parquet")
