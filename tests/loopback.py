"""Whether what `deploy.local` started listens on the loopback interface alone."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from deploy.local.processes import Processes


def listeners(pid: int) -> set[str]:
    """The addresses, as the kernel writes them, at which a process listens."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found = re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink()))
            inodes |= {found[1]} if found else set()
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def is_loopback(address: str) -> bool:
    return address in {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def all_on_loopback(directory: Path) -> bool:
    found = set().union(*(listeners(process.pid) for process in Processes(directory).started))
    return bool(found) and all(map(is_loopback, found))
