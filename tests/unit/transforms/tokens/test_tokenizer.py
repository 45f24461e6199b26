"""The ids around documents are those of the policy, and a run knows its tokenizer by its manifest."""

import hashlib
import shutil
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from schemas.errors import IntegrityError
from schemas.options import TokenizeOptions
from transforms.storage.folder import OutputFolder
from transforms.tokens import tokenizer
from transforms.tokens.tokenizer import TokenizeSettings, document_ends, manifest_digest, open_tokenizer, read_manifest

ENDS = {"<BOS>": 2, "<EOS>": 3}


@dataclass
class Loaded:
    digest: str = ""
    ids: dict[str, int] = field(default_factory=lambda: ENDS)

    def control_id(self, name):
        return self.ids[name]


@pytest.mark.parametrize(
    ("bos", "eos", "ends"), [(True, True, (2, 3)), (True, False, (2, None)), (False, True, (None, 3))]
)
def test_documents_end_as_the_policy_says(bos, eos, ends):
    assert document_ends(Loaded(), TokenizeOptions(bos=bos, eos=eos)) == ends


def test_a_control_token_that_the_policy_does_not_ask_for_may_be_missing():
    assert document_ends(Loaded(ids={}), TokenizeOptions(bos=False, eos=False)) == (None, None)


def test_the_digest_is_that_of_the_manifest_and_empty_without_one(out):
    assert manifest_digest(out) == ""
    out.publish_bytes("tokenizer/manifest.json", b"{}")
    assert manifest_digest(out) == hashlib.sha256(b"{}").hexdigest()


def test_a_tokenizer_that_is_not_the_planned_one_is_refused(out, monkeypatch):
    monkeypatch.setattr(tokenizer, "_load_tokenizer", lambda out, folder, digest: Loaded("b" * 64))
    settings = TokenizeSettings(out=out, tokenizer_digest="a" * 64, options=TokenizeOptions())
    with pytest.raises(IntegrityError, match=r"tokenizer/manifest.json: missing; restore it"):
        open_tokenizer(settings)
    out.publish_bytes("tokenizer/manifest.json", b"{}")
    with pytest.raises(IntegrityError, match=f"digest is {'b' * 64}, the plan was made for {'a' * 64}.*run again"):
        open_tokenizer(settings)


def test_a_list_of_files_that_is_older_than_the_manifest_is_named(run, tmp_path, monkeypatch):
    listed = shutil.copytree(run.out / "tokenizer", tmp_path / "listed")
    (listed / "manifest.json").unlink()
    monkeypatch.setattr(type(OutputFolder(run.out).store), "open_local_folder", lambda *_: nullcontext(listed))
    out = OutputFolder(run.out)
    monkeypatch.setattr(tokenizer, "_LOADED", {})
    with pytest.raises(IntegrityError, match=f"^{run.out}/tokenizer/manifest.json: a list .* lacks it.* again later"):
        open_tokenizer(TokenizeSettings(out=out, tokenizer_digest=manifest_digest(out), options=TokenizeOptions()))


@pytest.mark.parametrize(
    "data", [None, b"", b"{", b"\xff", b"[]", b"{}", b'{"vocab_size": "9", "tokens": [], "files": {}}']
)
def test_a_damaged_manifest_is_named_with_what_to_do(data, tmp_path):
    out = OutputFolder(tmp_path)
    if data is not None:
        out.publish_bytes("tokenizer/manifest.json", data)
    with pytest.raises(IntegrityError, match=r"manifest.json: not the manifest of a tokenizer .*; restore it"):
        read_manifest(out)
