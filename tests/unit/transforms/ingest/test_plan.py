"""Keys of the second pass: they follow what was found, not where or when."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from transforms.filters.verdicts import make_content_filter
from transforms.ingest.decisions import decide
from transforms.ingest.dedup.candidates import duplicate_candidates
from transforms.ingest.fingerprints import (
    find_digest,
    fingerprint_unit,
    fingerprints_digest,
    fingerprints_name,
    read_columns,
    read_fingerprints,
)
from transforms.ingest.input_units import plan_inputs
from transforms.ingest.minhash import signatures_name
from transforms.ingest.plan import find_first_pass, plan_ingest, prune_cache
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

SMALL = IngestOptions(unit_bytes=1 << 16)
CONTENT_FILTER = make_content_filter(SMALL)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    for index in range(80):
        path = root / f"p{index % 4}/f{index:02d}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"int a_%d;\n" % index * 400)
    return root


def keys(result: Any) -> list[str]:
    return [unit.key for unit in result.units]


def test_touched_and_moved_files_redo_nothing(
    corpus: Path, out: OutputFolder, tmp_path: Path, run_first_pass: Any
) -> None:
    before = keys(run_first_pass([corpus], out, SMALL))
    for path in corpus.rglob("*.cpp"):
        os.utime(path, ns=(7, 7))
    assert keys(run_first_pass([corpus], out, SMALL)) == before
    shutil.copytree(corpus, tmp_path / "elsewhere/corpus")
    assert keys(run_first_pass([tmp_path / "elsewhere/corpus"], OutputFolder(f"{out.root}-other"), SMALL)) == before


@pytest.mark.parametrize("change", ["edit", "add", "remove"])
def test_a_change_in_the_middle_redoes_two_units_at_most(
    change: str, corpus: Path, out: OutputFolder, run_first_pass: Any
) -> None:
    before = keys(run_first_pass([corpus], out, SMALL))
    assert len(before) > 5
    path = corpus / "p2/f42.cpp"
    if change == "edit":
        path.write_bytes(b"int other;\n")
    elif change == "add":
        (corpus / "p2/f41x.cpp").write_bytes(b"int more;\n")
    else:
        path.unlink()
    assert 1 <= len(set(keys(run_first_pass([corpus], out, SMALL))) - set(before)) <= 2


def test_a_duplicate_elsewhere_redoes_the_unit_that_loses_its_copy(
    corpus: Path, out: OutputFolder, run_first_pass: Any
) -> None:
    before = run_first_pass([corpus], out, SMALL)
    (corpus / "p0/a.cpp").write_bytes((corpus / "p3/f43.cpp").read_bytes())
    after = run_first_pass([corpus], out, SMALL)
    changed = [unit for unit in after.units if unit.key not in keys(before)]
    paths = [{path for path, *_ in unit.payload["inputs"]} for unit in changed]
    assert any("p3/f43.cpp" in group for group in paths)
    assert len(changed) <= 3


def test_options_that_shape_the_output_are_in_the_key(corpus: Path, out: OutputFolder, run_first_pass: Any) -> None:
    plain = keys(run_first_pass([corpus], out, SMALL))
    result = run_first_pass([corpus], out, SMALL.model_copy(update={"detect_platforms": False}))
    assert not set(plain) & set(keys(result))
    rules = plan_ingest(result.found, out, SMALL, config={"rules": "x"}, core_version="1")
    newer = plan_ingest(result.found, out, SMALL, config={}, core_version="2")
    assert not {unit.key for unit in rules} & set(plain)
    assert not {unit.key for unit in newer} & set(plain)


def test_units_of_equal_content_have_keys_of_their_own(corpus: Path, out: OutputFolder, run_first_pass: Any) -> None:
    result = run_first_pass([corpus, corpus], out, SMALL.model_copy(update={"drop_duplicates": False}))
    assert len(set(keys(result))) == len(result.units)
    assert keys(result) == keys(
        run_first_pass([corpus, corpus], out, SMALL.model_copy(update={"drop_duplicates": False}))
    )


def test_a_plan_without_a_first_pass_is_refused(corpus: Path, out: OutputFolder) -> None:
    inputs = plan_inputs(list_inputs([str(corpus)], SMALL), SMALL)
    with pytest.raises(IntegrityError, match="first pass"):
        plan_ingest(find_first_pass(inputs, out, SMALL), out, SMALL, config={}, core_version="1")


def test_fingerprints_are_made_once_unless_asked_for_again(corpus: Path, out: OutputFolder) -> None:
    options = IngestOptions()
    (unit,) = plan_inputs(list_inputs([str(corpus)], options), options)
    assert not find_digest(unit, out, options)
    name = fingerprint_unit(unit, out, options, CONTENT_FILTER)
    assert name == fingerprints_name(unit.key)
    digest = fingerprints_digest(out, name)
    (corpus / "p0/f00.cpp").write_bytes(b"changed in secret")
    fingerprint_unit(unit, out, options, CONTENT_FILTER)
    assert fingerprints_digest(out, name) == digest
    fingerprint_unit(unit, out, options, CONTENT_FILTER, rehash=True)
    assert fingerprints_digest(out, name) != digest


def test_fingerprints_that_are_damaged_are_made_again(corpus: Path, out: OutputFolder) -> None:
    options = IngestOptions()
    (unit,) = plan_inputs(list_inputs([str(corpus)], options), options)
    name = fingerprint_unit(unit, out, options, CONTENT_FILTER)
    digest = fingerprints_digest(out, name)
    out.publish_bytes(name, out.read_bytes(name)[:-9])
    assert not find_digest(unit, out, options)
    fingerprint_unit(unit, out, options, CONTENT_FILTER)
    assert fingerprints_digest(out, name) == digest


def test_fingerprints_of_other_options_are_made_again(corpus: Path, out: OutputFolder) -> None:
    made = [IngestOptions(near_duplicate_similarity=0.8, drop_generated=drops) for drops in (False, True)]
    units = [plan_inputs(list_inputs([str(corpus)], options), options)[0] for options in made]
    names = [fingerprint_unit(*of, CONTENT_FILTER) for of in zip(units, [out, out], made, strict=True)]
    assert names[0] != names[1] and find_digest(units[1], out, made[1])
    out.publish_bytes(names[1], out.read_bytes(names[0]))
    assert not find_digest(units[1], out, made[1])
    out.remove(names[1])
    fingerprint_unit(units[1], out, made[1], CONTENT_FILTER)
    assert find_digest(units[1], out, made[1])
    signatures = [signatures_name(*of) for of in zip([unit.key for unit in units], made, strict=True)]
    out.publish_bytes(signatures[1], out.read_bytes(signatures[0]))
    assert not find_digest(units[1], out, made[1])


def test_what_no_unit_needs_any_more_is_removed_from_the_cache(
    corpus: Path, out: OutputFolder, run_first_pass: Any
) -> None:
    first = run_first_pass([corpus], out, SMALL)
    assert prune_cache(first.found, out, SMALL) == 0
    (corpus / "p2/f42.cpp").unlink()
    second = run_first_pass([corpus], out, SMALL)
    assert prune_cache(second.found, out, SMALL) >= 2
    assert find_first_pass(second.found.units, out, SMALL) == second.found
    assert all(second.found.digests)
    assert plan_ingest(second.found, out, SMALL, config={}, core_version="1") == second.units


def test_no_damage_to_fingerprints_is_taken_for_what_was_read(tmp_path: Path, out: OutputFolder) -> None:
    (tmp_path / "in").mkdir()
    for number in range(40):
        (tmp_path / f"in/{number}.h").write_bytes(b"int a;" * number)
    (unit,) = plan_inputs(list_inputs([str(tmp_path / "in")], IngestOptions()), IngestOptions())
    name = fingerprint_unit(unit, out, IngestOptions(), CONTENT_FILTER)
    data, digest = out.read_bytes(name), find_digest(unit, out, IngestOptions())
    path = tmp_path / "damaged.parquet"
    path.write_bytes(data)
    columns = ["doc_id", "project", "path"]
    readers: list[Callable[[], Any]] = [
        lambda: list(read_fingerprints(path)),
        lambda: list(duplicate_candidates(path, 0, 3)),
        lambda: read_columns(path, columns),
    ]
    whole = [read() for read in readers]
    planned: Any = SimpleNamespace(payload={"duplicates": "", "near_duplicates": "", "kind": "tar"})
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        out.publish_bytes(name, bytes(damaged))
        assert find_digest(unit, out, IngestOptions()) in ("", digest)
        for read, expected in zip(readers, whole, strict=True):
            try:
                decide(planned, path, out, IngestOptions())
                assert read() == expected
            except IntegrityError as error:
                assert str(path) in str(error)
