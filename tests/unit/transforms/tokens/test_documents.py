"""Documents of a run, looked up by what an export says of it."""

from typing import Any

import pytest

from schemas.errors import IntegrityError
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder
from transforms.tokens.documents import RunDocuments


def test_a_shard_that_the_receipt_does_not_name_is_an_error_that_says_so(run: Any) -> None:
    out = OutputFolder(run.out)
    with pytest.raises(
        IntegrityError, match=r"tokgns/part-0\.parquet: the receipt does not name it; run `cppmill run`"
    ):
        RunDocuments(out, read_receipt(out)).open("tokgns/part-0.parquet")
