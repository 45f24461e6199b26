"""A small random corpus: real headers, what readers must refuse or drop, and archives of both."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MAX_FILE_BYTES = 20_000


def real_texts() -> list[bytes]:
    """Return headers that are installed here, the same in every round."""
    folders = (Path(np.get_include()), Path(pa.get_include()) / "arrow" / "array")
    files = sorted(path for folder in folders for path in folder.rglob("*.h"))
    return [path.read_bytes() for path in files if path.stat().st_size <= MAX_FILE_BYTES]


def write_corpus(folder: Path, random: Random, texts: list[bytes]) -> None:
    """Write some ten files of several kinds, and one with all texts."""
    for number in range(random.randint(4, 10)):
        path = folder / random.choice(("one", "two/deep", "")) / f"{random.choice(('a', 'ä b', 'x'))}{number}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(random, texts))
    for write in random.sample((_write_tar, _write_zip, _write_jsonl, _write_parquet), random.randint(0, 2)):
        write(folder, random, texts)
    (folder / "kept.h").write_bytes(b"\n".join(texts))  # so that there is enough to learn every id from


def _content(random: Random, texts: list[bytes]) -> bytes:
    kinds = (b"", b"\0binary", random.randbytes(300), b"\xff\xfeint \xe9;\n" * 9)
    return random.choice(kinds) if random.random() < 0.2 else random.choice(texts)


def _members(random: Random, texts: list[bytes]) -> dict[str, bytes]:
    return {f"m{number}.h": _content(random, texts) for number in range(random.randint(1, 6))}


def _damaged(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(1, len(data))] if random.random() < 0.3 else data


def _write_tar(folder: Path, random: Random, texts: list[bytes]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in _members(random, texts).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    (folder / "t.tar.gz").write_bytes(_damaged(gzip.compress(buffer.getvalue(), 1, mtime=0), random))


def _write_zip(folder: Path, random: Random, texts: list[bytes]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in _members(random, texts).items():
            archive.writestr(name, data)
    (folder / "z.zip").write_bytes(_damaged(buffer.getvalue(), random))


def _write_jsonl(folder: Path, random: Random, texts: list[bytes]) -> None:
    lines = [
        json.dumps({"path": name, "content": data.decode("latin-1")}) for name, data in _members(random, texts).items()
    ]
    (folder / "j.jsonl").write_bytes(_damaged("\n".join(lines).encode(), random))


def _write_parquet(folder: Path, random: Random, texts: list[bytes]) -> None:
    members = _members(random, texts)
    buffer = io.BytesIO()
    pq.write_table(pa.table({"path": list(members), "content": pa.array(members.values(), pa.binary())}), buffer)
    (folder / "p.parquet").write_bytes(_damaged(buffer.getvalue(), random))
