"""A vocabulary folder of any bytes is read or refused; nothing else happens."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.errors import VocabularyConfigError
from tests.fuzzing import CHANGES, damage, examples
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.lock import read_releases

pytestmark = pytest.mark.fuzz

FILES = {
    "own.toml": b"""\
band = "domain"
cut = ["EXPECT_EQ"]
cut_categories = []
[[candidates]]
category = "acme"
match = "prefix"
api_prefixes = ["acme_"]
keep = true
[candidates.tokens]
6999 = "acme_init"
[[morphemes]]
position = "prefix"
terms = ["acme"]
""",
    "ids.lock": b'# ids\n"<PAD>"\t0\tpublished\n"auto"\t64\t1.0\n"\\u00e9"\t66\tcppmill-1\n',
    "releases.lock": b"# releases\n1.0\t" + b"0" * 64 + b"\ncppmill-1\t" + b"1" * 64 + b"\n",
}


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(FILES)), changes=CHANGES)
def test_a_damaged_file_is_read_or_named(tiny_vocabulary, name, changes):
    (tiny_vocabulary / name).write_bytes(damage(FILES[name], changes))
    try:
        load_vocabulary(tiny_vocabulary)
        read_releases(tiny_vocabulary)
    except VocabularyConfigError as error:
        assert str(error)
        assert all(line.isprintable() for line in str(error).splitlines())
