"""Unit keys cover what decides the output; units and receipts survive their files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.digests import canonical_json, sha256_json
from schemas.errors import IntegrityError
from schemas.tables import LICENSE_SOURCES, REDACTED_COLUMNS
from schemas.units import OutputFile, Stage, Unit, UnitReceipt, is_sealed, unit_key

REDACTED = {name: {"documents": 1, "places": 2} for name in REDACTED_COLUMNS.names}
BASE = {"stage": Stage.SCAN, "core_version": "0.1.0", "config": {"pattern": "p"}, "inputs": ["a"]}
RECEIPT = UnitReceipt(
    stage=Stage.TOKENIZE,
    key="0" * 64,
    outputs=(OutputFile(path="tokens/part-0.parquet", sha256="1" * 64, num_bytes=10, rows=2),),
    totals={"tokens": 3},
    inputs={"documents/part-0.parquet": "2" * 64},
)


@pytest.mark.parametrize(
    "change",
    [
        {"stage": Stage.TOKENIZE},
        {"core_version": "0.1.1"},
        {"config": {"pattern": "q"}},
        {"inputs": ["b"]},
        {"inputs": ["a", 1]},
    ],
)
def test_a_key_changes_with_everything_that_it_covers(change):
    assert unit_key(**{**BASE, **change}) != unit_key(**BASE)


def test_a_key_does_not_depend_on_the_order_of_configuration():
    assert unit_key(**{**BASE, "config": {"a": 1, "b": 2}}) == unit_key(**{**BASE, "config": {"b": 2, "a": 1}})


def test_a_unit_survives_its_bytes_with_names_that_are_not_utf8():
    unit = Unit(stage=Stage.INGEST, key="k", num_bytes=1, label="caf\udce9", payload={"inputs": [["caf\udce9.cpp", 1]]})
    assert Unit.from_bytes(unit.to_bytes()) == unit


def test_a_receipt_survives_its_bytes():
    assert UnitReceipt.from_bytes(RECEIPT.to_bytes(), where="here") == RECEIPT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"format":"cppmill-unit-0"}',
        RECEIPT.to_bytes()[:-5],
        RECEIPT.to_bytes().replace(b'"key"', b'"kee"'),
        RECEIPT.to_bytes().replace(b'"tokens":3', b'"tokens":7'),
        RECEIPT.to_bytes().replace(b"unit-2", b"unit-1"),
        RECEIPT.to_bytes() + b"\n",
        RECEIPT.to_bytes().replace(b'{"digest"', b'{"totals":{"tokens":9},"digest"'),
    ],
)
def test_what_is_not_a_receipt_is_refused_by_name(data):
    with pytest.raises(IntegrityError, match="here: not a unit receipt"):
        UnitReceipt.from_bytes(data, where="here")


def test_a_receipt_without_a_digest_of_its_own_is_read_and_told_apart():
    value = json.loads(RECEIPT.to_bytes())
    del value["digest"]
    old = canonical_json({**value, "format": "cppmill-unit-1"})
    assert UnitReceipt.from_bytes(old, where="here") == RECEIPT
    assert is_sealed(RECEIPT.to_bytes()) and not is_sealed(old)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["format", "stage", "key", "outputs", "totals", "inputs", "ledger", "digest", "more"])


@pytest.mark.fuzz
@given(NAMES, JSON, st.booleans())
def test_a_receipt_with_any_other_value_is_refused_or_read_as_it_is(name, value, sealed):
    changed = {**json.loads(RECEIPT.to_bytes()), name: value}
    if sealed and name != "digest":
        changed["digest"] = sha256_json({key: entry for key, entry in changed.items() if key != "digest"})
    try:
        found = UnitReceipt.from_bytes(canonical_json(changed), where="x.json")
    except IntegrityError as error:
        assert "x.json" in str(error)
    else:
        assert json.loads(found.to_bytes()).get(name) == changed[name] or name == "format"


@pytest.mark.fuzz
@given(st.integers(0, len(RECEIPT.to_bytes()) - 1), st.integers(1, 255))
def test_no_changed_byte_of_a_receipt_is_read(place, change):
    data = bytearray(RECEIPT.to_bytes())
    data[place] ^= change
    with pytest.raises(IntegrityError):
        UnitReceipt.from_bytes(bytes(data), where="x.json")


@pytest.mark.parametrize("change", [{"ledger": None}, {"inputs": None}, {"note": 1}])
def test_a_receipt_has_each_of_its_keys_and_no_other(change):
    value = json.loads(RECEIPT.to_bytes())
    changed = {name: entry for name, entry in {**value, **change}.items() if entry is not None and name != "digest"}
    data = canonical_json({**changed, "digest": sha256_json(changed)})
    with pytest.raises(IntegrityError, match="its keys are"):
        UnitReceipt.from_bytes(data, where="x.json")


def test_a_receipt_whose_outputs_have_other_keys_says_which():
    value = json.loads(RECEIPT.to_bytes())
    value["outputs"][0]["row3"] = value["outputs"][0].pop("rows")
    del value["digest"]
    data = canonical_json({**value, "digest": sha256_json(value)})
    with pytest.raises(IntegrityError, match="the keys of an output are num_bytes, path, row3, sha256"):
        UnitReceipt.from_bytes(data, where="here")


@pytest.mark.parametrize("path", ["", ".", "a\0b", "../out", "/tmp/out", "counts//terms", "a/", 300 * "x"])
def test_a_receipt_names_files_as_commands_write_them(path):
    value = json.loads(RECEIPT.to_bytes())
    value["outputs"][0]["path"] = path
    del value["digest"]
    with pytest.raises(IntegrityError, match="outputs: no file has the path"):
        UnitReceipt.from_bytes(canonical_json({**value, "digest": sha256_json(value)}), where="here")


def check_form(receipt, changed, *, is_written):
    """Check that a receipt is taken, or refused for the first total that was changed."""
    if is_written:
        receipt.check_facts(where="a")
    else:
        named = f"no unit of {receipt.stage} writes this receipt .totals: {next(iter(changed))}"
        with pytest.raises(IntegrityError, match=named):
            receipt.check_facts(where="a")


@pytest.mark.parametrize(
    ("altered", "is_written"),
    [
        ({"altered": 0, "redacted": REDACTED, "licenses": dict.fromkeys(LICENSE_SOURCES, 1)}, True),
        ({"altered": -1}, False),
        ({"altered": "0"}, False),
        ({"redacted": {}}, False),
        ({"redacted": REDACTED | {"redacted_ips": {"documents": 0}}}, False),
        ({"redacted": REDACTED | {"redacted_ips": {"documents": "0", "places": 0}}}, False),
        ({"licenses": {"tag": 1}}, False),
        ({"licenses": []}, False),
    ],
)
def test_what_was_altered_has_the_form_that_ingest_writes(altered, is_written):
    nothing = {"in": 0, "kept": 0, "empty": 0, "duplicate": 0, "filtered": {}, "dead": {}}
    ledger, totals = {"documents": nothing, "bytes": nothing}, {"documents": 0, "bytes": 0, **altered}
    receipt = UnitReceipt(stage=Stage.INGEST, key="0" * 64, outputs=(), totals=totals, ledger=ledger)
    check_form(receipt, altered, is_written=is_written)


@pytest.mark.parametrize(
    ("stage", "name", "is_written"),
    [
        (Stage.SCAN, f"counts/parts/words-{'0' * 64}.parquet", True),
        (Stage.SCAN, f"counts/parts/words-{'1' * 64}.parquet", False),
        (Stage.SCAN, "counts/words/part-000.parquet", True),
        (Stage.SEQUENCES, f"sequences/part-{'1' * 64}.parquet", False),
        (Stage.BUILD, "tokenizer/manifest.json", True),
    ],
)
def test_a_unit_has_no_file_with_the_name_of_another_ones(stage, name, is_written):
    output = OutputFile(path=name, sha256="2" * 64, num_bytes=9, rows=0)
    receipt = UnitReceipt(stage=stage, key="0" * 64, outputs=(output,), totals={})
    if is_written:
        receipt.check_facts(where="a")
    else:
        with pytest.raises(IntegrityError, match="outputs: a file has the name of another unit's"):
            receipt.check_facts(where="a")


@pytest.mark.parametrize(
    ("stage", "name"), [(Stage.SCAN, "counts/words/part-000.parquet"), (Stage.BUILD, "tokenizer/manifest.json")]
)
def test_merged_counts_and_tokenizers_have_no_number_of_rows(stage, name):
    output = OutputFile(path=name, sha256="2" * 64, num_bytes=9, rows=1)
    with pytest.raises(IntegrityError, match="rows of merged counts and of a tokenizer are not counted"):
        UnitReceipt(stage=stage, key="0" * 64, outputs=(output,), totals={}).check_facts(where="a")


def test_a_scan_without_counts_is_none():
    with pytest.raises(IntegrityError, match="no unit of scan writes this receipt .outputs: there is none"):
        UnitReceipt(stage=Stage.SCAN, key="0" * 64, outputs=(), totals={}).check_facts(where="a")


@pytest.mark.parametrize("inputs", [{"a": None}, {"a": 1}, {"a": "0" * 63}, {"a": "G" * 64}])
def test_inputs_have_digests(inputs):
    with pytest.raises(IntegrityError, match="inputs: a digest is no SHA-256"):
        UnitReceipt(stage=Stage.SCAN, key="0" * 64, outputs=(), totals={}, inputs=inputs).check_facts(where="a")


@pytest.mark.parametrize(
    ("more", "is_written"),
    [
        ({}, True),
        ({"lost": {"documents": {"nmt_nfkc": 1}, "bytes": {"nmt_nfkc": 2}}}, True),
        ({"lost": {"documents": {"nmt_nfkc": 1}}}, False),
        ({"lost": {"documents": {"nmt_nfkc": "1"}, "bytes": {}}}, False),
        ({"lost": []}, False),
        ({"corpus_digest": None}, False),
        ({"dataset_digest": "0"}, False),
    ],
)
def test_digests_and_losses_of_a_proof_have_the_form_that_validate_writes(more, is_written):
    totals = dict.fromkeys(("documents", "bytes", "tokens", "max_token_id"), 0)
    digests = dict.fromkeys(("dataset_digest", "corpus_digest"), "0" * 64)
    proof = UnitReceipt(
        stage=Stage.VALIDATE,
        key="0" * 64,
        outputs=(),
        totals={**totals, **digests, **more},
        inputs={"tokens/part-0.parquet": "1" * 64, "documents/part-0.parquet": "2" * 64},
    )
    check_form(proof, more, is_written=is_written)


COUNTED = ("positions", "positions_with_loss", "segments", "sequences", "documents_in", "tokens_in")
SEQUENCES = dict.fromkeys(COUNTED, 1) | {"documents_in_sequences": 1, "tokens_in_sequences": 1}
SPLIT = {"documents": 1, "tokens": 2}


@pytest.mark.parametrize(
    ("stage", "totals", "refused"),
    [
        (Stage.SEQUENCES, SEQUENCES | {"segments_psm": 1, "weight: ": 1}, None),
        *((Stage.SEQUENCES, dict.fromkeys(set(COUNTED) - {name}, 1), f"{name} is missing") for name in COUNTED),
        (Stage.SEQUENCES, SEQUENCES | {"documents_in_sequences": 0}, "the ledger of sequences does not balance"),
        (Stage.SEQUENCES, SEQUENCES | {"tokens_cut": 1}, "the ledger of sequences does not balance"),
        (Stage.SPLITS, {"train": SPLIT, "val": SPLIT}, None),
        (Stage.SPLITS, {"train": SPLIT}, "they are train"),
        (Stage.SPLITS, {"train": SPLIT, "val": {"tokens": 2}}, "val is"),
        (Stage.PROJECTS, {"projects": [["fmt", 0, 2, 9]]}, None),
        (Stage.PROJECTS, {}, "they are"),
        (Stage.PROJECTS, {"projects": [["fmt", 0, 2]]}, "projects is"),
        (Stage.PROJECTS, {"projects": [["fmt", 0, 2, "9"]]}, "projects is"),
    ],
)
def test_a_unit_of_an_export_has_the_totals_that_its_stage_writes(stage, totals, refused):
    receipt = UnitReceipt(stage=stage, key="0" * 64, outputs=(), totals=totals)
    if refused is None:
        receipt.check_facts(where="a")
    else:
        with pytest.raises(IntegrityError, match=f"no unit of {stage} writes this receipt .totals: {refused}"):
            receipt.check_facts(where="a")


@pytest.mark.parametrize("stage", [Stage.SPLITS, Stage.SHARDS, Stage.PROJECTS, Stage.SEQUENCES, Stage.DRIFT])
def test_a_unit_of_an_export_has_no_ledger(stage):
    totals = {
        Stage.SPLITS: {"train": SPLIT, "val": SPLIT},
        Stage.SHARDS: {"split": "val", "documents": 0, "bytes": 0, "tokens": 0}
        | dict.fromkeys(("ids_sha256", "dataset_digest"), "0" * 64),
        Stage.PROJECTS: {"projects": []},
        Stage.SEQUENCES: SEQUENCES,
        Stage.DRIFT: {},
    }[stage]
    receipt = UnitReceipt(stage=stage, key="0" * 64, outputs=(), totals=totals, ledger={"documents": {"in": 1}})
    with pytest.raises(IntegrityError, match=f"ledger: a unit of {stage} has none"):
        receipt.check_facts(where="a")
