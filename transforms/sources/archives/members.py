"""Members of an archive behind a URL (`tar://src::s3://bucket/a.tar`), which fsspec lists and opens.

Of two members of one name fsspec has the last. It ends at a damaged header, looks at no checksum, takes a link for a
file, and says nothing of it. So the readers of this package read such an archive to its end before its members are
listed, and one of which any would be lost is refused: given itself, as a source, it is read with a reason for each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import BinaryIO

from schemas.reasons import Column, Filtered
from transforms.sources.archives.tar import iter_tar
from transforms.sources.archives.zip import iter_zip, needs_zstandard
from transforms.sources.document import Archive, DamageError, display_path, normalise
from transforms.sources.streams import MemberStream


@dataclass
class Members(Archive):
    """An archive that is read for the names of its members.

    Attributes:
        names: Of regular files, as the archive gives them.
        links: Of links and special files.
    """

    names: list[str] = field(default_factory=list, init=False)
    links: set[str] = field(default_factory=set, init=False)

    def drops(self, member: str, *, has_extension: bool = True) -> Filtered | None:
        """Note a member, and return that it is not dropped."""
        self.names.append(member)
        return None

    def leave_alone(self, member: str, find_target: Callable[[], str | None]) -> None:
        """Note a link or special file."""
        self.links.add(member)

    def find_damage(self, open_raw: Callable[[], BinaryIO], *, is_zip: bool, codec: str) -> str:
        """Read the archive, and return what is damaged, or not read for another reason; empty for a whole archive."""
        try:
            if is_zip:
                with open_raw() as file:
                    dead = next((found for found in iter_zip(self, file) if found.column == Column.DEAD), None)
                    if sys.version_info < (3, 14) and needs_zstandard(file):
                        return "some of its members are compressed with Zstandard"
            else:
                with closing(MemberStream(self, open_raw, codec)) as stream:
                    dead = next((found for found in iter_tar(self, stream) if found.column == Column.DEAD), None)
        except DamageError as damage:
            return str(damage)
        return f"{dead.path}: {dead.reason}: {dead.detail}" if dead else ""

    def find_lost(self, listed: Iterable[str]) -> str:
        """Return what is lost, or there under another name, in a list of the members; empty for a complete list."""
        counted = Counter(self.names)
        twice = {name for name, number in counted.items() if number > 1}
        different = counted.keys() ^ (set(listed) - self.links) | {name for name in counted if normalise(name) != name}
        if twice:
            return f"{display_path(min(twice))} is there twice"
        return f"{display_path(min(different))} is a name that cannot be listed" if different else ""
