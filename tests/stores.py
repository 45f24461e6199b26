"""The object stores that tests start."""

from __future__ import annotations

import uuid

from deploy.local.gcs import GoogleStore
from deploy.local.s3 import ObjectStore

RunningStore = ObjectStore | GoogleStore
STORES: dict[str, type[RunningStore]] = {"s3": ObjectStore, "gs": GoogleStore}


def new_prefix(store: RunningStore) -> str:
    """Make an empty bucket and return the URL of a prefix in it.

    Tests don't share one, because fake-gcs-server reads every object of a bucket to list a prefix.
    """
    name = f"cppmill-{uuid.uuid4()}"
    store.create_bucket(name)
    return f"{store.scheme}://{name}/tests"
