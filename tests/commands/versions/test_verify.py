"""Whatever is changed in a finished run, `verify` fails and names the file."""

import errno
import json
import os
import random
import shutil
from contextlib import suppress
from types import SimpleNamespace

import pytest

from pipelines.console.progress import Reporters
from pipelines.versions.verify import verify
from schemas.digests import sha256_json
from schemas.errors import ResourceError
from transforms.records.versions import find_run

NAMED = {
    "a token shard": "tokens/part-*.parquet",
    "a documents shard": "documents/part-*.parquet",
    "a unit receipt": "units/tokens/_unit-*.json",
    "a proof": "proofs/_unit-*.json",
    "the tokenizer": "tokenizer/tokenizer.json",
    "the manifest": "tokenizer/manifest.json",
    "the counts": "counts/words/part-000.parquet",
    "the receipt": "receipt.json",
}


@pytest.mark.parametrize("name", ["documents", "tokenizer"])
def test_what_this_process_may_not_open_is_no_difference(run, monkeypatch, name):
    def refuse(*_arguments, **_options):
        raise OSError(errno.EMFILE, "Too many open files", f"{run.out}/{name}")

    target = "shard_proofs.prove_shard" if name == "documents" else "verification.cppmill_core.load_tokenizer"
    monkeypatch.setattr(f"transforms.records.checks.{target}", refuse)
    with pytest.raises(ResourceError, match=f"{name}: no more files can be open at once"):
        verify(str(run.out))


@pytest.mark.parametrize("pattern", NAMED.values(), ids=NAMED.keys())
def test_one_flipped_byte_is_found_and_named(copied_run, cppmill, pattern):
    draw = random.Random(pattern)
    path = draw.choice(sorted(copied_run.out.glob(pattern)))
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert path.relative_to(copied_run.out).as_posix() in (done.stdout + done.stderr).replace("\n", "")


@pytest.mark.parametrize("pattern", [pattern for pattern in NAMED.values() if pattern != "receipt.json"])
def test_a_missing_file_is_found_and_named(copied_run, cppmill, pattern):
    path = sorted(copied_run.out.glob(pattern))[0]
    path.unlink()
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert path.name in (done.stdout + done.stderr).replace("\n", "")


@pytest.mark.parametrize("pattern", ["documents/part-*", "tokens/part-*", "proofs/_unit-*", "counts/terms.parquet"])
def test_a_file_that_a_run_removes_meanwhile_is_named(copied_run, pattern):
    path = sorted(copied_run.out.glob(pattern))[-1]

    class Removing(Reporters):
        def stage_started(self, stage, units, num_bytes):
            path.unlink()

    found = verify(str(copied_run.out), reporter=Removing())
    assert path.name in found[0], found


HOSTILE = {
    "a list": lambda receipt: receipt.update(ledger=[]),
    "a number beyond 2^53": lambda receipt: receipt["dataset"].update(tokens=10**400),
    "not a number": lambda receipt: receipt["dataset"].update(tokens=float("nan")),
    "no path": lambda receipt: receipt["dataset"]["shards"][0].pop("path"),
    "a shard of text": lambda receipt: receipt["dataset"]["shards"].append("x"),
    "no tokenizer": lambda receipt: receipt.pop("tokenizer"),
    "a file without digest": lambda receipt: receipt["files"].update({"tokenizer/tokenizer.json": None}),
    "options that there are not": lambda receipt: [
        table.update(bos="x") for table in (receipt["configs"]["tokenize"], receipt["policy"])
    ],
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_receipt_of_another_form_is_one_line_in_every_command(copied_run, cppmill, tmp_path, change):
    path = copied_run.out / "receipt.json"
    receipt = json.loads(path.read_bytes())
    change(receipt)
    with suppress(ValueError):  # of what canonical JSON cannot hold
        receipt["digest"] = sha256_json({name: value for name, value in receipt.items() if name != "digest"})
    path.write_text(json.dumps(receipt))
    told = []
    for words in (
        ("verify", copied_run.out),
        ("report", copied_run.out, "--out", tmp_path / "page.html"),
        ("provenance", copied_run.out, "--out", tmp_path / "card", "--date", "2026-01-01"),
        ("lineage", copied_run.out, "--out", tmp_path / "lineage.jsonl"),
        ("shards", copied_run.out, "--out", tmp_path / "shards"),
        ("sequences", copied_run.out, "--out", tmp_path / "sequences", "--length", "256"),
        ("vocab", "working-set", copied_run.out, "--out", tmp_path / "set.json"),
        ("prove-absent", copied_run.out, 64 * "0"),
    ):
        done = cppmill(*words, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in ((1,) if words[0] == "verify" else (0, 1, 2))
        told += [words[0]] if "receipt.json: not " in done.stdout + done.stderr else []
    assert {"shards", "sequences"} <= set(told)


def test_a_link_to_the_same_bytes_outside_is_found_and_goes_with_the_next_run(copied_run, cppmill, tmp_path):
    shard = next((copied_run.out / "tokens").glob("part-*"))
    shard.rename(tmp_path / "outside")
    shard.symlink_to(tmp_path / "outside")
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert "not a file but a link or the like, though the receipt names it" in " ".join(done.stdout.split())
    assert "missing" not in done.stdout
    cppmill(*copied_run.command)
    assert not shard.is_symlink()
    cppmill("verify", copied_run.out)


def test_a_file_that_the_receipt_does_not_name_is_found(copied_run, cppmill):
    (copied_run.out / "tokens" / "part-stray.parquet").write_bytes(b"PAR1")
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert "part-stray.parquet" in (done.stdout + done.stderr).replace("\n", "")


def link_to_folder(place, elsewhere):
    (place / "zz").symlink_to(elsewhere)
    return place / "zz"


def link_to_nothing(place, elsewhere):
    (place / "zz").symlink_to(elsewhere / "nothing")
    return place / "zz"


def link_to_file(place, elsewhere):
    (place / "part-zz.parquet").symlink_to(next(elsewhere.iterdir()))
    return place / "part-zz.parquet"


def pipe(place, elsewhere):
    os.mkfifo(place / "part-zz.parquet")
    return place / "part-zz.parquet"


@pytest.mark.parametrize("make", [link_to_folder, link_to_nothing, link_to_file, pipe])
def test_what_is_no_file_of_the_run_is_found_and_a_run_removes_it(copied_run, cppmill, tmp_path, make):
    before, tokens = copied_run.tree(), copied_run.out / "tokens"
    elsewhere = shutil.copytree(tokens, tmp_path / "elsewhere")
    strange = make(tokens, elsewhere)
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert str(strange) in (done.stdout + done.stderr).replace("\n", "")
    cppmill(*copied_run.command)
    cppmill("verify", copied_run.out)
    assert copied_run.tree() == before
    assert any(elsewhere.iterdir())


def test_a_shard_that_became_a_pipe_is_named_and_not_waited_for(copied_run, cppmill):
    shard = next((copied_run.out / "tokens").glob("part-*.parquet"))
    shard.unlink()
    os.mkfifo(shard)
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert shard.name in (done.stdout + done.stderr).replace("\n", "")


@pytest.mark.parametrize("name", [".cache", ".lock"])
def test_a_cache_or_lock_that_is_a_link_is_found(copied_run, cppmill, tmp_path, name):
    place = copied_run.out / name
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    done = cppmill("verify", copied_run.out, check=False)
    assert (done.returncode, f"{place}: not a file but a link or the like" in done.stdout) == (1, True)


def test_a_folder_without_a_receipt_is_unfinished(tmp_path, cppmill):
    done = cppmill("verify", tmp_path, check=False)
    assert done.returncode == 1
    assert "there is no receipt" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("key", ["vocab_size", "digest"])
def test_a_receipt_about_another_tokenizer_is_found_even_with_a_true_digest(copied_run, cppmill, key):
    from schemas.digests import canonical_json, sha256_json

    receipt = copied_run.receipt
    receipt["tokenizer"][key] = receipt["tokenizer"][key] + 1 if key == "vocab_size" else "0" * 64
    del receipt["digest"]
    (copied_run.out / "receipt.json").write_bytes(canonical_json({**receipt, "digest": sha256_json(receipt)}))
    done = cppmill("verify", copied_run.out, check=False)
    assert done.returncode == 1
    assert f"its {key} is" in " ".join((done.stdout + done.stderr).split())


def test_validate_refuses_a_tokenizer_that_did_not_make_the_shards(copied_run, cppmill, tmp_path):
    other = tmp_path / "other"
    cppmill(
        "run",
        copied_run.sources / "numpy",
        copied_run.sources / "arrow",
        "--out",
        other,
        "--vocab-size",
        "8192",
    )
    for path in (copied_run.out / "tokenizer").iterdir():
        path.unlink()
    for path in (other / "tokenizer").iterdir():
        (copied_run.out / "tokenizer" / path.name).write_bytes(path.read_bytes())
    done = cppmill("validate", *copied_run.command[1:], check=False)
    assert done.returncode == 1
    digests = [
        json.loads((out / "receipt.json").read_bytes())["tokenizer"]["digest"] for out in (other, copied_run.out)
    ]
    assert all(digest in done.stderr.replace("\n", "") for digest in digests), done.stderr


def test_a_store_stands_for_its_current_version(run, cppmill, tmp_path):
    versions = tmp_path / "store" / "versions"
    versions.mkdir(parents=True)
    (versions / "v000002").symlink_to(run.out)
    (tmp_path / "store" / "current").symlink_to("versions/v000002")
    done = cppmill("verify", tmp_path / "store", "--reencode", "0", "--json")
    assert json.loads(done.stdout) == {
        **{"out": str(versions / "v000002"), "record": "receipt", "reencoded": 0.0, "is_true": True},
        "differences": [],
    }
    assert find_run(str(run.out)) == str(run.out)
    (tmp_path / "store" / "current").unlink()
    assert find_run(str(tmp_path / "store")) == str(tmp_path / "store")


def test_the_shards_that_are_read_back_are_reported(run):
    said = []
    reporter = SimpleNamespace(
        stage_started=lambda *words: said.append(words), progress=lambda *done: said.append(done)
    )
    assert verify(str(run.out), 0, reporter) == []
    shards = len(run.receipt["dataset"]["shards"])
    assert said == [("verify", shards, 0), *((done, 0) for done in range(1, shards + 1))]


def test_the_name_of_a_file_is_no_line_of_an_answer(copied_run, cppmill, tmp_path):
    line = f"\n{tmp_path.name}: everything is what the receipt says\n"
    name = line.replace("/", "_")
    (copied_run.out / "tokens" / name).write_text("")
    done = cppmill("verify", copied_run.out, check=False)
    assert (done.returncode, line in done.stdout, f"\n    {line.strip()}" in done.stdout) == (1, False, True)
    (copied_run.out / "tokenizer" / name).write_text("")
    given = ("--tokenizer", copied_run.out / "tokenizer")
    done = cppmill("run", copied_run.sources / "arrow", "--out", tmp_path / "other", *given)
    assert (line in done.stderr, line.strip() in done.stderr) == (False, True)
