"""The commands `show` and `explain`: a source file with its tokens in colour, and which merges made each token.

A token is shaded by its band, neighbours of one band in two shades; atomic tokens are bold. Characters that a terminal
would obey instead of printing are written as escapes, so a file cannot affect it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cppmill_core import AnyTokenizer
from rich.console import Console
from rich.style import Style
from rich.text import Text

from pipelines.console.terminal import naming_stream
from pipelines.pages import check_page, render_page, write_page
from pipelines.tokenizers.codec import load_tokenizer
from schemas.printing import printable
from tokenizer_build.bands import Strength
from tokenizer_build.compare.diff import Entry, read_ids
from tokenizer_build.compare.origins import MadeToken, display_bands, read_origins

HUES = {
    "control": ("#ff8a80", "#ff6e63"),
    "keywords": ("#9fc5ff", "#84b3fb"),
    "operators": ("#ffd59e", "#fbc582"),
    "preprocessor": ("#e0b3ff", "#d39cfa"),
    "numbers": ("#b5ead7", "#99dfc5"),
    "whitespace": ("#e8e6df", "#d9d6cc"),
    "library": ("#a8e6a1", "#8dd985"),
    "morphemes": ("#f9e79f", "#f2da7c"),
    "integers": ("#b2ebf2", "#93dde6"),
    "domain": ("#ffb3c6", "#fb9ab3"),
    "reserve": ("#ff8a80", "#ff6e63"),
    "learned": ("#cfd8e8", "#b9c6de"),
}
"""Two shades of each band, both readable under black text on light and dark ground; tints of the report's colours."""

_SLOW_PAGE_BYTES = 20_000_000
"""From here on a browser takes seconds."""


@dataclass(frozen=True)
class Piece:
    """A token of a text as it is shown: its id, and its text without what a terminal or a page would obey."""

    id: int
    text: str


def shown_text(token: bytes) -> str:
    r"""Return the text of a token with nothing in it that is not printed: line ends and tabs keep a mark.

    Example:
        >>> shown_text(b"\tx\x1b\xe2\n")
        '⇥   x\\x1b\\xe2⏎\n'
    """
    text = token.decode("utf-8", "backslashreplace")
    marks = {"\n": "⏎\n", "\t": "⇥   "}
    return "".join(marks.get(c) or printable(c) for c in text)


@dataclass(frozen=True)
class Palette:
    """What is known of each id of a tokenizer of any kind: the token, and the band that colours it."""

    tokenizer: AnyTokenizer
    entries: tuple[Entry, ...]
    bands: tuple[str, ...]

    @classmethod
    def read(cls, directory: Path) -> Palette:
        """Read it from a tokenizer directory."""
        tokenizer = load_tokenizer(directory)
        entries = read_ids(directory, tokenizer).entries
        return cls(tokenizer, entries, display_bands(directory, entries))

    def encode(self, data: bytes) -> Iterator[Piece]:
        """Yield the tokens of a text."""
        numbers: list[Any] = self.tokenizer.encode(data).to_pylist()
        for number in numbers:
            yield Piece(number, shown_text(self.entries[number].token))


def print_tokens(data: bytes, directory: Path, *, ids: bool) -> None:
    """Print a text with its tokens in colour, and what its bands and strengths amount to.

    Args:
        data: The text, any bytes.
        directory: The tokenizer directory.
        ids: Put its id behind each token.
    """
    palette = Palette.read(directory)
    console = Console(highlight=False, soft_wrap=True)
    plain = not console.is_terminal or console.no_color
    pieces = list(palette.encode(data))
    text = Text()
    for place, piece in enumerate(pieces):
        body = piece.text.removesuffix("\n")
        text.append(body, _style(palette, piece.id, shade=place % 2))
        text.append(f"⟨{piece.id}⟩" if ids else "│" if plain else "", Style(dim=True))
        text.append(piece.text[len(body) :])
    with naming_stream(console.file):
        console.print(text)
        console.print(_legend(palette, [piece.id for piece in pieces], len(data)))


def _style(palette: Palette, number: int, *, shade: int) -> Style:
    ground = HUES[palette.bands[number]][shade]
    return Style(color="black", bgcolor=ground, bold=palette.entries[number].strength is Strength.ATOMIC)


def _legend(palette: Palette, ids: Sequence[int], num_bytes: int) -> Text:
    """Return the line that says what there was: tokens, bytes per token, and the share of each band."""
    text = Text(f"{len(ids):,} tokens, {num_bytes:,} bytes, {num_bytes / max(len(ids), 1):.2f} bytes per token\n")
    for band, number in Counter(palette.bands[i] for i in ids).most_common():
        text.append(f" {band} ", Style(color="black", bgcolor=HUES[band][0]))
        text.append(f" {number:,} ({number / len(ids):.1%})  ")
    return text


def page_of_tokens(data: bytes, directory: Path, page: Path, *, title: str) -> str:
    """Write a text with its tokens in colour as one page, with what is known of the token under the pointer.

    Args:
        data: The text, any bytes.
        directory: The tokenizer directory.
        page: The HTML file to write.
        title: Names the text.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If the page cannot be written there, or a file that is no page is there.
    """
    check_page(page, option="--html")
    palette = Palette.read(directory)
    pieces = list(palette.encode(data))
    used = sorted({piece.id for piece in pieces})
    counts = Counter(palette.bands[piece.id] for piece in pieces)
    html = render_page(
        "show.html.j2",
        title=title,
        pieces=pieces,
        tokens={number: _facts(palette, number) for number in used},
        bands=palette.bands,
        hues=HUES,
        counts=counts.most_common(),
        num_tokens=len(pieces),
        num_bytes=len(data),
        tokenizer=palette.tokenizer.digest,
    )
    line = f"{write_page(html, page, option='--html')}; {len(pieces):,} tokens"
    return line + (", slow to open: show a part of the file" if len(html) > _SLOW_PAGE_BYTES else "")


def _facts(palette: Palette, number: int) -> list[Any]:
    entry = palette.entries[number]
    return [str(entry), entry.strength.value, palette.bands[number], len(entry.token)]


def explain_text(text: bytes, directory: Path, *, as_json: bool) -> Iterator[str]:
    """Yield lines that say which merges, in order, made each token of a text.

    Args:
        text: Any bytes.
        directory: The tokenizer directory.
        as_json: One JSON object per token instead.
    """
    for token in read_origins(directory, load_tokenizer(directory)).explain(text):
        if as_json:
            yield json.dumps(_record(token))
            continue
        entry = token.entry
        kind = ", ".join(dict.fromkeys((entry.strength.value, token.band)))  # of a learned token, one word is both
        yield f"{entry!s:24} id {entry.id:<6} {kind}"
        for merge in token.merges:
            yield f"    merge {merge.rank:<6} {merge.phase.value:6} {_quote(merge.left)} + {_quote(merge.right)}"


def _record(token: MadeToken) -> dict[str, Any]:
    entry = token.entry
    merges = [
        {"rank": m.rank, "phase": m.phase.value, "left": _quote(m.left), "right": _quote(m.right)} for m in token.merges
    ]
    return {"id": entry.id, "token": str(entry), "strength": entry.strength.value, "band": token.band, "merges": merges}


def _quote(token: bytes) -> str:
    """Return bytes as one line of ASCII."""
    return repr(token)[1:]
