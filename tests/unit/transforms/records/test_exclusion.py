"""Proofs of exclusion: the independent checker believes the true ones of every tree, and no forged one."""

import json
import runpy
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.digests import sha256_file
from schemas.errors import ConfigError, IntegrityError
from transforms.records.exclusion import prove
from transforms.storage.folder import OutputFolder

CHECKER = Path(__file__).parents[4] / "checks" / "check_exclusion.py"
DOC_IDS = sorted(sha256(bytes([number])).hexdigest() for number in range(20))


@pytest.fixture(scope="module")
def check():
    """Check a proof against a root: True if it shows absence, False if presence, None if nothing."""
    program = runpy.run_path(str(CHECKER))

    def run(root, proof):
        try:
            return program["check"](root, proof, proof["doc_id"])
        except (program["Unproven"], ValueError):
            return None

    return run


@pytest.fixture
def proofs(tmp_path):
    """Make the proof of a doc_id for a dataset of others, in two shards with a copy in both."""

    def make(doc_ids, doc_id, **receipt):
        shards = {"tokens/a.parquet": doc_ids[::2], "tokens/b.parquet": doc_ids[1::2] + doc_ids[:1]}
        for name, part in shards.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"doc_id": pa.array(part, pa.string())}), tmp_path / name)
        lines = [{"path": name, "sha256": sha256_file(tmp_path / name)} for name in shards]
        named = {"files": {}, "dataset": {"shards": lines}}
        return prove(OutputFolder(tmp_path), {**named, **receipt}, doc_id)

    return make


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 11])
def test_every_absent_document_is_proven_absent_and_every_present_one_present(size, proofs, check):
    inside, outside = DOC_IDS[1 : 2 * size : 2], DOC_IDS[: 2 * size + 1 : 2]
    for doc_id in inside + outside:
        proof = proofs(inside, doc_id)
        assert check(proof["root"], proof) is (doc_id in outside) is not proof["is_in"]
        assert check(sha256(b"").hexdigest(), proof) is None


def test_no_forged_proof_of_absence_is_believed(proofs, check):
    inside = DOC_IDS[:11]
    gone = inside[5]
    before, after = (proofs(inside, doc_id) for doc_id in (inside[4], inside[6]))
    neighbours = [proof["neighbours"][0] for proof in (before, after)]
    forged = {**before, "doc_id": gone, "neighbours": neighbours}
    assert check(before["root"], forged) is None, "they are not beside each other"
    moved = [neighbours[0], {**neighbours[1], "index": neighbours[0]["index"] + 1}]
    assert check(before["root"], {**forged, "neighbours": moved}) is None
    assert check(before["root"], {**forged, "neighbours": neighbours[:1]}) is None
    for size in range(1, 24):
        assert check(before["root"], {**forged, "doc_ids": size}) is None
        assert check(before["root"], {**forged, "doc_ids": size, "neighbours": neighbours[:1]}) is None
    assert check(before["root"], {**forged, "doc_ids": 0, "neighbours": []}) is None


def test_the_root_of_the_receipt_counts_and_a_doc_id_is_a_sha256(proofs):
    with pytest.raises(IntegrityError, match="its root is 00, the shards give"):
        proofs(DOC_IDS[:3], DOC_IDS[5], exclusion={"root": "00"})
    with pytest.raises(ConfigError, match="DOC_ID abc: not a doc_id"):
        proofs(DOC_IDS[:3], "abc")


def test_the_checker_is_a_program_of_its_own(proofs, tmp_path, monkeypatch, capsys):
    proof = proofs(DOC_IDS[:3], DOC_IDS[5])
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    for root, code in ((proof["root"], 0), (64 * "0", 2)):
        monkeypatch.setattr(sys, "argv", [str(CHECKER), root, str(tmp_path / "proof.json")])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(CHECKER), run_name="__main__")
        assert ended.value.code == code
    assert capsys.readouterr().out.startswith(f"ok    absent: {DOC_IDS[5]}\nFAIL  nothing is proven")


@pytest.mark.parametrize(
    ("receipt", "proof"),
    [
        ('{"dataset": {}}', None),
        (None, None),
        ("ROOT", None),
        ("ROOT", '{"doc_id": "", "doc_ids": Infinity, "neighbours": []}'),
        ("ROOT", 100_000 * "["),
    ],
    ids=["a receipt without a root", "no receipt", "no proof", "a size without end", "nested too deep"],
)
def test_what_cannot_be_read_proves_nothing(receipt, proof, tmp_path):
    """Exit code 1 would say that the document is there."""
    for name, text in (("receipt.json", receipt), ("proof.json", proof)):
        if text is not None:
            (tmp_path / name).write_text(text.replace("ROOT", json.dumps({"exclusion": {"root": 64 * "0"}})))
    command = [sys.executable, CHECKER, tmp_path / "receipt.json", tmp_path / "proof.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("FAIL  nothing is proven: ")


def test_a_tree_larger_than_any_proves_nothing(proofs, tmp_path):
    proof = proofs(DOC_IDS[:3], DOC_IDS[0])
    [neighbour] = proof["neighbours"]
    proof |= {"doc_ids": 2**70, "neighbours": [{**neighbour, "index": 0, "path": 70 * [64 * "0"]}]}
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    command = [sys.executable, CHECKER, proof["root"], tmp_path / "proof.json"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
