"""Withdrawals on fingerprints: another list reads no source, and a unit that it does not touch stays as it was."""

import numpy as np
import pytest

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from transforms.filters.verdicts import make_content_filter
from transforms.filters.withdrawals import Withdrawals
from transforms.ingest.fingerprints import fingerprint_unit, fingerprints_digest, fingerprints_name, read_fingerprints
from transforms.ingest.input_units import UNMARKED, plan_inputs
from transforms.ingest.minhash import copy_signatures, read_signatures, signatures_name
from transforms.ingest.plan import find_first_pass, prune_cache
from transforms.ingest.withdrawn_rows import fingerprint_marked
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

OPTIONS = IngestOptions(near_duplicate_similarity=0.8)
TEXT = "int add(int a, int b) {{ return {} + a + b; }}\n"


@pytest.fixture
def made(tmp_path):
    """Make fingerprints with a list of withdrawn documents, the sources gone if they were read before."""
    corpus, out = tmp_path / "corpus", OutputFolder(tmp_path / "out")
    corpus.mkdir()
    for number in range(3):
        (corpus / f"{number}.h").write_text(TEXT.format(number) * 9)
    (corpus / "empty.h").touch()
    filters = make_content_filter(OPTIONS)
    listing = list_inputs([str(corpus)], OPTIONS)

    def make(**values):
        withdrawals = Withdrawals.of(values)
        (unit,) = plan_inputs(listing, OPTIONS, None, withdrawals)
        fingerprint_marked(unit, out, OPTIONS, withdrawals, lambda unit: fingerprint_unit(unit, out, OPTIONS, filters))
        for path in corpus.glob("*.h"):
            path.unlink()
        return unit, out

    return make


def reasons(out, unit):
    with out.open_local(fingerprints_name(unit.key)) as path:
        return [row["reason"] for batch in read_fingerprints(path) for row in batch.to_pylist()]


def test_another_list_reads_no_source(made):
    unit, out = made(paths=["1.h"])
    assert reasons(out, unit) == ["", "withdrawn", "", ""]
    unit, out = made(paths=["1.h", "2.h", "empty.h"])
    assert reasons(out, unit) == ["", "withdrawn", "withdrawn", ""], "an empty document stays one"
    with out.open_local(signatures_name(unit.key, OPTIONS)) as path:
        (signed,) = read_signatures(path, OPTIONS.near_duplicate_permutations)
    assert np.asarray(signed.rows).tolist() == [0]
    found = find_first_pass([unit], out, OPTIONS)
    assert not found.unread
    prune_cache(found, out, OPTIONS)
    assert made(projects=["other"])[0].key != unit.key, "the fingerprints without withdrawals are kept"


def test_damaged_signatures_are_named_where_they_are_copied(made, tmp_path):
    made(projects=["other"])
    (path, *_) = tmp_path.glob("out/.cache/signatures/*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=f"^{path}: damaged .*; run again with --rehash"):
        copy_signatures(path, tmp_path / "copy", "copy", kept=np.array([True] * 4), digest="", options=OPTIONS)


def test_a_unit_without_a_withdrawn_document_has_the_digest_that_it_had(made):
    unit, out = made(projects=["other"])
    before = fingerprints_name(unit.payload[UNMARKED])
    assert fingerprints_digest(out, fingerprints_name(unit.key)) == fingerprints_digest(out, before)
