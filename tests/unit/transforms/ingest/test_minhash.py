"""Signatures estimate the similarity of sets of shingles, and are those of the fingerprints beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from transforms.filters.verdicts import make_content_filter
from transforms.ingest.fingerprints import find_digest, fingerprint_unit
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.minhash import agreeing, estimate, read_signatures, sign, signatures_name, sketch
from transforms.ingest.shingles import Shingles, shingle
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

OPTIONS = IngestOptions(near_duplicate_similarity=0.8)
CONTENT_FILTER = make_content_filter(OPTIONS)


def similarity(first: np.ndarray, second: np.ndarray, permutations: int) -> float:
    """What the sketches of two sets of shingles say."""
    offsets = np.array([0, len(first), len(first) + len(second)], dtype=np.uint64)
    sketches = sketch(sign(Shingles(np.concatenate([first, second]), offsets), permutations))
    return float(estimate(agreeing(sketches[:1], sketches[1:]), permutations)[0])


@pytest.mark.parametrize("size", [20, 1000])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_the_estimate_is_right_on_average(size: int, share: float) -> None:
    random = np.random.default_rng(7)
    common = round(2 * size * share / (1 + share))
    exact = common / (2 * size - common)
    found = []
    for _ in range(60):
        values = random.integers(0, 1 << 64, 2 * size - common, dtype=np.uint64)
        found.append(similarity(values[:size], values[size - common :], 256))
    assert abs(np.mean(found) - exact) < 0.02
    assert np.std(found) < 0.06


def test_order_and_repetition_change_nothing() -> None:
    values = np.random.default_rng(8).integers(0, 1 << 64, 500, dtype=np.uint64)
    assert similarity(values, np.concatenate([values[::-1], values[:100]]), 64) == 1.0


def test_the_signature_of_a_text_is_this_one_on_every_machine() -> None:
    found = sign(shingle([b"int main(int argc, char** argv) { return argc > 1 ? 0 : 1; }"], 5), 64)
    assert found[0, :8].tolist() == [109, 199, 130, 51, 56, 43, 225, 236]


def test_a_unit_is_read_again_if_its_signatures_are_missing_or_of_another_reading(
    tmp_path: Path, out: OutputFolder
) -> None:
    (tmp_path / "in").mkdir()
    for name, text in {"a.h": b"int a;", "b.h": b"// b", "c.h": b"int\0c;", "d.h": b"int a; // d"}.items():
        (tmp_path / "in" / name).write_bytes(text)
    (unit,) = plan_inputs(list_inputs([str(tmp_path / "in")], OPTIONS), OPTIONS)
    fingerprint_unit(unit, out, IngestOptions(), CONTENT_FILTER)
    assert find_digest(unit, out, IngestOptions())
    assert not find_digest(unit, out, OPTIONS)
    fingerprint_unit(unit, out, OPTIONS, CONTENT_FILTER)
    assert find_digest(unit, out, OPTIONS)
    assert not find_digest(unit, out, OPTIONS.model_copy(update={"near_duplicate_tokens": 6}))
    with out.open_local(signatures_name(unit.key, OPTIONS)) as path:
        [(rows, signatures)] = read_signatures(path, 256)
    assert rows.tolist() == [0, 3]
    assert np.array_equal(signatures[0], signatures[1])
    (tmp_path / "in" / "a.h").write_bytes(b"int b;")
    fingerprint_unit(unit, out, IngestOptions(), CONTENT_FILTER, rehash=True)
    assert not find_digest(unit, out, OPTIONS)


def test_units_whose_last_document_fills_a_batch_or_that_have_none_have_signatures(
    tmp_path: Path, out: OutputFolder
) -> None:
    for name, text in {"full/a.h": b"int a;" * (1 << 18), "none/a.h": b""}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(text)
        (unit,) = plan_inputs(list_inputs([str(tmp_path / name)], OPTIONS), OPTIONS)
        fingerprint_unit(unit, out, OPTIONS, CONTENT_FILTER)
        with out.open_local(signatures_name(unit.key, OPTIONS)) as path:
            assert sum(len(signed.rows) for signed in read_signatures(path, 256)) == bool(text)


def test_no_damage_to_signatures_is_taken_for_what_was_signed(tmp_path: Path, out: OutputFolder) -> None:
    (tmp_path / "in").mkdir()
    for number in range(40):
        (tmp_path / f"in/{number}.h").write_bytes(b"int a;" * number)
    (unit,) = plan_inputs(list_inputs([str(tmp_path / "in")], OPTIONS), OPTIONS)
    fingerprint_unit(unit, out, OPTIONS, CONTENT_FILTER)
    name, path = signatures_name(unit.key, OPTIONS), tmp_path / "damaged.parquet"

    def read() -> list[tuple[int, bytes]]:
        found = read_signatures(path, 256)
        return [(int(row), signature.tobytes()) for signed in found for row, signature in zip(*signed, strict=True)]

    data, refused = out.read_bytes(name), 0
    path.write_bytes(data)
    whole = read()
    for place in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert read() == whole
        except IntegrityError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 300


def test_signatures_that_are_damaged_are_made_again(tmp_path: Path, out: OutputFolder) -> None:
    (tmp_path / "a.h").write_bytes(b"int a;")
    (unit,) = plan_inputs(list_inputs([str(tmp_path / "a.h")], OPTIONS), OPTIONS)
    fingerprint_unit(unit, out, OPTIONS, CONTENT_FILTER)
    name = signatures_name(unit.key, OPTIONS)
    whole = out.read_bytes(name)
    out.publish_bytes(name, whole[:-9])
    assert not find_digest(unit, out, OPTIONS)
    fingerprint_unit(unit, out, OPTIONS, CONTENT_FILTER)
    assert out.read_bytes(name) == whole
