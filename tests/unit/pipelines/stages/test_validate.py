"""A receipt is not made from a listing that is older than what was written."""

import pytest

from pipelines.stages.validate import _check_listed
from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder
from transforms.tokens.tokenizer import read_manifest


def test_a_listing_without_the_tokenizer_is_refused(run):
    out = OutputFolder(run.out)
    manifest, listed = read_manifest(out), set(out.files())
    _check_listed(out, listed, manifest)
    for name in ("platform_vocab.json", "tokenizer/manifest.json", "tokenizer/tokenizer.json"):
        with pytest.raises(IntegrityError, match=name):
            _check_listed(out, listed - {name}, manifest)
