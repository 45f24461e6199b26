"""A receipt is not made from a listing that is older than what was written, and names no file that went."""

import pytest

from pipelines.stages import validate
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


@pytest.mark.parametrize("name", ["notes.txt", "platform_vocab.json"])
def test_a_file_that_goes_while_the_receipt_is_made_is_named_and_in_no_receipt(copied_run, cppmill, monkeypatch, name):
    gone, find_named = copied_run.out / name, validate._named_files

    def remove_one(*arguments):
        named = find_named(*arguments)
        gone.unlink()
        return named

    (copied_run.out / "notes.txt").write_text("mine")
    (copied_run.out / "receipt.json").unlink()
    monkeypatch.setattr(validate, "_named_files", remove_one)
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, (copied_run.out / "receipt.json").exists()) == (1, False)
    assert f"error: {gone}: it is not there any more" in " ".join(done.stderr.split())
