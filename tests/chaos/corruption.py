"""The corruption suite: one file of each kind below OUT is damaged, and every command must say so or mend it.

    python -m tests.chaos.corruption --seconds 120 --seed 7

A damage is a flipped bit, a cut, zeros, or nothing left; the time of the file is another one or the same. After it
`verify` must name the file, unless it is part of the cache. A `run`, with the same or other options, must end with the
files that it makes without the damage, or with an error that names a file, and with these files once its advice was
followed. The record of the run, its cache, or both may be gone before, and the stages may run one by one. Only a file
that rots while its time stays may be left, if `verify` names it. With `mended` digests, where every receipt is signed
again for the damage, no command may end in anything but an answer: what only signatures can prove is accepted, a
traceback is not. A damage of Parquet may also be statistics that hide rows, or counts of a shard in another order; both
are mended, and `verify` must find them. Of exports nothing is accepted: beside the run `verify` must find every damage,
mended or not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from schemas.digests import canonical_json, sha256_file, sha256_json
from schemas.units import RUN_STAGES
from tests.chaos.__main__ import Suite, make_parser
from tests.chaos.jobs import ANYTHING, SMALL, difference, tree
from tests.processes import ProcessServer

RESERVED = (".lock",)
EXPORTS = {
    "bin": ("shards", "--platform-ids", "--split-by", "document", "--validation-fraction", "0.3"),
    "pairs": ("shards", "--format", "megatron", "--split-by", "document", "--validation-fraction", "0.3"),
    "sequences": ("sequences", "--length", "256", "--fim", "0.3"),
}
"""Commands that make exports of a run, without run and folder."""

OF_RUN = ("--near-duplicate-similarity", "0.8", "--unit-bytes", "65536")
"""The options of the run that is damaged."""

CHANGES = (
    (),
    (),
    ("--drop-generated",),
    ("--no-detect-platforms",),
    ("--rebuild-tokenizer",),
    ("--near-duplicate-similarity", "0.5"),
)
"""Further options of the run after the damage."""

LOST = ((), (), (), ("receipt.json",), (".cache",), ("receipt.json", ".cache"))
"""What the run that is damaged lost before."""

STAGES = tuple(map(str, RUN_STAGES))
COMMANDS = (("run",), ("run",), STAGES)
"""What runs after the damage; the stages one by one, and then a run if one of them refuses."""

MOST_ADVICE = 4
"""How often the advice of an error is followed."""

EXPORT_EVERY = 4
"""Of so many damages one is of an export."""


def kinds(out: Path) -> dict[str, list[Path]]:
    """Return the files of OUT by kind: their names without keys, dates and numbers."""
    found: dict[str, list[Path]] = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file() and path.name not in RESERVED):
        name = path.relative_to(out).as_posix()
        kind = re.sub(r"[0-9a-f]{32,}|\d{8}T\S+(?=\.)|\d+", "#", name)
        found.setdefault(kind, []).append(path)
    return found


def damage(path: Path, random: Random) -> str:
    """Damage a file, and return how."""
    data, how = bytearray(path.read_bytes()), random.choice(("bit", "bit", "bit", "cut", "zeros", "empty"))
    place = random.randrange(len(data)) if data else 0
    if not data:
        data, how = bytearray(b"x"), "a byte more"
    elif how == "bit":
        data[place] ^= 1 << random.randrange(8)
    elif how == "cut":
        del data[place:]
    elif how == "zeros":
        data[place : place + 64] = bytes(len(data[place : place + 64]))
    else:
        data.clear()
    path.unlink()  # it may share its bytes with another folder
    path.write_bytes(data)
    return f"{how} at {place}"


def forge(path: Path, random: Random) -> str:
    """Make the statistics of a Parquet file false, or turn the rows of counts around; return how, or "" if neither."""
    rows = pq.read_table(path, partitioning=None)
    if path.parent.name == "parts" and rows.num_rows > 1 and random.random() < 0.5:
        pq.write_table(rows.take(list(range(rows.num_rows))[::-1]), path, compression="zstd")
        return "rows turned around"
    data, groups = path.read_bytes(), pq.read_metadata(path).to_dict()["row_groups"]
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    least = [(chunk["statistics"] or {}).get("min") for group in groups for chunk in group["columns"]]
    texts = [text.encode() for text in least if isinstance(text, str) and 3 < len(text) < 99]
    if not texts:
        return ""
    text = random.choice(texts)
    changed = data[start:].replace(text, text[:-1] + bytes([text[-1] ^ 1]))
    path.unlink()
    path.write_bytes(data[:start] + changed)
    return f"statistics of {text!r}"


def mend(out: Path) -> None:
    """Make the digests true again: of files in unit receipts and manifests, and of the receipts themselves."""
    for path in sorted(out.rglob("_unit-*.json")):
        _rewrite(path, lambda value: _mend_unit(value, out))
    _rewrite(out / "tokenizer/manifest.json", lambda value: _mend_files(value["files"], out / "tokenizer"), seal=False)
    _rewrite(out / "receipt.json", lambda value: _mend_receipt(value, out))


def mend_export(out: Path) -> None:
    """Do the same for an export."""
    for path in sorted(out.rglob("_unit-*.json")):
        _rewrite(path, lambda value: _mend_unit(value, out))
    _rewrite(out / "manifest.json", lambda value: _mend_manifest(value, out))


def _restore_versions(out: Path, base: Path) -> None:
    """Put back the versions in a manifest, of which no other file says anything."""
    if (out / "manifest.json").read_bytes() != (base / "manifest.json").read_bytes():
        code = json.loads((base / "manifest.json").read_bytes())["code"]
        _rewrite(out / "manifest.json", lambda value: value.update(code=code))


def _mend_manifest(value: dict[str, Any], out: Path) -> None:
    _mend_files(value["receipts"], out)
    for file in value["files"]:
        if (out / file["path"]).is_file():
            file.update(sha256=sha256_file(out / file["path"]), num_bytes=(out / file["path"]).stat().st_size)


def _mend_unit(value: dict[str, Any], out: Path) -> None:
    for output in value["outputs"]:
        if (out / output["path"]).is_file():
            output.update(sha256=sha256_file(out / output["path"]), num_bytes=(out / output["path"]).stat().st_size)
    _mend_files(value["inputs"], out)


def _mend_files(files: dict[str, str], folder: Path) -> None:
    files.update({name: sha256_file(folder / name) for name in files if (folder / name).is_file()})


def _mend_receipt(value: dict[str, Any], out: Path) -> None:
    _mend_files(value["files"], out)
    for shard in value["dataset"]["shards"]:
        shard["sha256"] = sha256_file(out / shard["path"])
    value["tokenizer"]["digest"] = sha256_file(out / "tokenizer/manifest.json")


def _rewrite(path: Path, change: Any, *, seal: bool = True) -> None:
    """Change a JSON file and sign it; one that is damaged or gone stays as it is."""
    try:
        value = json.loads(path.read_bytes())
        change(value)
        if seal:
            value["digest"] = sha256_json({name: entry for name, entry in value.items() if name != "digest"})
        path.write_bytes(canonical_json(value))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return


class Corruption(Suite):
    """Damages copies of one finished run."""

    def __init__(self, folder: Path, seed: int, processes: ProcessServer) -> None:
        """Make the run."""
        super().__init__(folder, seed, processes)
        self.out, self.expected = self.base / "damaged", dict[tuple[str, ...], dict[str, str]]()
        self.must(*self.words(self.out))

    def words(self, out: Path, *more: str) -> list[str]:
        """Return the words of the run, with further options."""
        return ["run", str(self.base / "sources"), "--out", str(out), *ANYTHING, *SMALL, *OF_RUN, *more]

    def without_damage(self, change: tuple[str, ...]) -> dict[str, str]:
        """Return what the run makes of an undamaged copy with further options."""
        if change not in self.expected:
            out = self.folder / "whole"
            shutil.copytree(self.out, out, symlinks=True)
            self.must(*self.words(out, *change))
            self.expected[change] = tree(out)
            shutil.rmtree(out)
        return self.expected[change]

    def attempt(self, kind: str, random: Random, number: int) -> Iterator[str]:
        """Damage a file of a kind in a copy of the run, and yield what no command may answer."""
        out, change = self.folder / f"copy-{number}", random.choice(CHANGES)
        expected = self.without_damage(change)
        shutil.copytree(self.out, out, symlinks=True)
        path = random.choice(kinds(out)[kind])
        lost, commands = random.choice(LOST), random.choice(COMMANDS)
        lost = () if path.relative_to(out).parts[0] in lost else lost
        for name in lost:
            shutil.rmtree(out / name) if name == ".cache" else (out / name).unlink()
        before, status, keeps_time = path.read_bytes(), path.stat(), random.random() < 0.5
        how = forge(path, random) if path.suffix == ".parquet" and random.random() < 0.5 else ""
        is_forged = bool(how) and ".cache" not in path.parts
        how, is_mended = how or damage(path, random), is_forged or random.random() < 0.4
        if is_mended:
            mend(out)
        if path.read_bytes() == before:
            return
        if keeps_time:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        title = f"{path.relative_to(out)}: {how}{', mended' if is_mended else ''}{', time kept' if keeps_time else ''}"
        title = " ".join((title, *(f"without {name}" for name in lost)))
        is_named = ".cache" not in path.parts
        code, said, err = self.run("verify", str(out))
        yield from _unclear(title, "verify", code, said + err)
        if is_named and (is_forged or not is_mended) and code == 0:
            yield f"{title}: verify says that all is well"
        title = " ".join((title, *change, *commands))
        for command in commands:
            code, said, err = self.run(command, *self.words(out, *change)[1:])
            yield from _unclear(title, command, code, err)
            if code:
                break
        if code and str(out) not in err:
            yield f"{title}: run names no file: {err[-500:]}"
        for _ in range(MOST_ADVICE):
            more = _follow(err, out)
            if code and not is_mended and (more is not None or len(commands) > 1):
                more, commands = more or (), ("run",)
                code, said, err = self.run(*self.words(out, *change, *more))
                yield from _unclear(title, "run", code, err)
        if code == 0 and not is_mended and (other := difference(expected, tree(out))):
            is_left = keeps_time and other == f"{path.relative_to(out)} changed"
            if not is_left or self.run("verify", str(out))[0] == 0:
                yield f"{title}: run again: {other}"
        shutil.rmtree(out)

    def attempt_export(self, random: Random, number: int) -> Iterator[str]:
        """Damage a file of an export, and yield what `verify` beside the run may not answer."""
        name = random.choice(sorted(EXPORTS))
        base, out, source = self.folder / name, self.folder / f"copy-{number}", str(self.base / "out")
        if not base.exists():
            self.must(*EXPORTS[name], source, "--out", str(base))
            shutil.rmtree(base / ".cache", ignore_errors=True)
        shutil.copytree(base, out)
        path = random.choice(random.choice(sorted(kinds(out).values())))
        before = tree(out)
        how, is_mended = damage(path, random), random.random() < 0.7
        if is_mended:
            mend_export(out)
            _restore_versions(out, base)
        title = f"{name}, {path.relative_to(out)}: {how}{', mended' if is_mended else ''}"
        code, said, err = self.run("verify", str(out), "--run", source, "--reencode", "1")
        yield from _unclear(title, "verify", code, said + err)
        if code == 0 and tree(out) != before:
            yield f"{title}: verify says that all is well"
        shutil.rmtree(out)

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command and return how it ended."""
        process = self.processes.command(*words, env=self.environment, stdout=-1, stderr=-1)
        out, err = process.communicate(300)
        return process.returncode, out, err


def _follow(said: str, out: Path) -> tuple[str, ...] | None:
    """Follow the advice of an error, and return further options; None if there is none that is followed."""
    if "run again with --rehash" in said:
        return ("--rehash",)
    advised = re.search(r"error: (/[^\n]*?): [^\n]*(?:remove (?:it|the file)|delete it)", said)
    if advised is None or not (path := Path(advised[1])).is_relative_to(out) or not path.exists():
        return None
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return ()


def _unclear(title: str, command: str, code: int, said: str) -> Iterator[str]:
    if "Traceback" in said or "unexpected" in said or code not in (0, 1, 2, 3):
        yield f"{title}: {command} exit {code}: {said[-1500:]}"


def main() -> int:
    """Damage files until the time is over, each kind in turn; return 1 if anything was wrong."""
    options = make_parser(__doc__).parse_args()
    seed = options.seed
    print(f"corruption: seed {seed}", flush=True)
    end, number, wrong = time.monotonic() + options.seconds, 0, 0
    with tempfile.TemporaryDirectory(prefix="cppmill-corruption-") as name, ProcessServer(Path(name)) as processes:
        suite = Corruption(Path(name), seed, processes)
        names = sorted(kinds(suite.out))
        Random(seed).shuffle(names)
        while time.monotonic() < end:
            random = Random(f"{seed}-{number}")
            is_export = number % EXPORT_EVERY == EXPORT_EVERY - 1
            kind = names[number % len(names)]
            found = suite.attempt_export(random, number) if is_export else suite.attempt(kind, random, number)
            for problem in found:
                print(f"corruption: seed {seed} number {number}: {problem}", flush=True)
                wrong += 1
            number += 1
    print(f"corruption: seed {seed}: {number} files of {len(names)} kinds damaged, {wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
