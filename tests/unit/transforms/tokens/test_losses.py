"""What a lossy tokenizer loses: counted by document, and ids that are not the document's are refused."""

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cppmill_core import load_tokenizer
from cppmill_core.adoption import find_source, write_directory
from sentencepiece import SentencePieceTrainer

from schemas.errors import IntegrityError
from schemas.options import TokenizeOptions
from schemas.reasons import Lost, how_lost
from transforms.storage.folder import OutputFolder
from transforms.tokens.losses import Losses
from transforms.tokens.tokenizer import TokenizeSettings

DOCUMENTS = [b"int x;", b"int  x;", b"int y;\n", b"int \xff;"]


@pytest.fixture
def losses(tmp_path):
    SentencePieceTrainer.train(
        sentence_iterator=iter(["int x; int y;"] * 9), model_prefix=str(tmp_path / "m"), vocab_size=300,
        byte_fallback=True, model_type="bpe", hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (tmp_path / "tokenizer").mkdir()
    write_directory(find_source(tmp_path / "m.model", allow_lossy=True), tmp_path / "tokenizer")
    tokenizer = load_tokenizer(tmp_path / "tokenizer")
    documents = pa.table({"content": pa.array(DOCUMENTS, pa.binary())})
    pq.write_table(documents, tmp_path / "documents.parquet", row_group_size=2)
    settings = TokenizeSettings(
        out=OutputFolder(tmp_path), tokenizer_digest=tokenizer.digest, options=TokenizeOptions(bos=False)
    )
    return Losses(sources=pq.ParquetFile(tmp_path / "documents.parquet"), tokenizer=tokenizer, settings=settings)


def rows(losses, documents):
    ids = losses.tokenizer.encode_batch(documents, eos=losses.tokenizer.control_id("<EOS>"))
    names = [f"{hashlib.sha256(document).hexdigest()[:4]}.cpp" for document in documents]
    return pa.record_batch({"path": names, "token_ids": ids})


def test_each_document_is_counted_by_what_became_of_it(losses):
    losses.prove(rows(losses, DOCUMENTS[1:]), pa.array([0, 1, 2]).to_numpy(), start=1, where="here")
    assert losses.to_json() == {
        "documents": {"not_utf8": 1, "spaces": 2},
        "bytes": {"not_utf8": len(DOCUMENTS[3]), "spaces": len(DOCUMENTS[1]) + len(DOCUMENTS[2])},
    }


@pytest.mark.parametrize(("number", "other"), [(1, b"int y;"), (0, b"int x;")])
def test_ids_of_another_document_are_no_loss(losses, number, other):
    """Nor are those of a document that comes back, which nothing could have lost."""
    with pytest.raises(IntegrityError, match=r"here: ....\.cpp does not have the ids that the tokenizer gives"):
        losses.prove(rows(losses, [other]), pa.array([0]).to_numpy(), start=number, where="here")


@pytest.mark.parametrize(
    ("document", "decoded", "reason"),
    [
        (b"\xff", "\ufffd".encode(), Lost.NOT_UTF8),
        ("a\u4e16".encode(), "a \u2047 ".encode(), Lost.UNKNOWN),
        ("\u2047 a\t".encode(), "\u2047 a".encode(), Lost.SPACES),
        ("\u3000a".encode(), b"a", Lost.SPACES),
        ("\ufb01".encode(), b"fi", Lost.CHARACTERS),
        (b"e\xcc\x81\xff", b"\xc3\xa9\xff", Lost.CHARACTERS),
    ],
)
def test_the_first_reason_that_applies_is_named(document, decoded, reason):
    assert how_lost(document, decoded) is reason
