"""A footer says which tokenizer and which unit made a file; another one is reported with both values."""

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import IntegrityError
from transforms.tokens.shards import check_footer, check_origin, footer, tokenizer_facts

TOKENIZER = SimpleNamespace(digest="d" * 64, vocab_size=300)
OTHER = SimpleNamespace(digest="e" * 64, vocab_size=300)


@pytest.fixture
def shard(out):
    def write(path):
        with pq.ParquetWriter(path, pa.schema({"row": pa.int64()})) as writer:
            writer.add_key_value_metadata(footer("k", TOKENIZER, 299))
        return 0

    return out.publish("tokens/part.parquet", write).path


def test_a_footer_is_read_back(out, shard):
    with out.open_local(shard) as path, pq.ParquetFile(path) as file:
        check_footer(file, shard, {**tokenizer_facts(TOKENIZER), "max_token_id": "299", "unit": "k"})
        with pytest.raises(IntegrityError, match=f"{shard}: its footer says unit k, but it is l"):
            check_footer(file, shard, {"unit": "l"})


def test_a_shard_of_another_tokenizer_is_reported(out, shard):
    check_origin(out, shard, TOKENIZER)
    with pytest.raises(IntegrityError, match=f"its footer says tokenizer {'d' * 64}, but it is {'e' * 64}"):
        check_origin(out, shard, OTHER)
