"""The places of a run: sources, output folder, tokenizer directory, checked before anything starts.

Only the file system is asked, and whether the packages for URLs are installed. Globs and what is behind URLs are left
to the listing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeGuard

from configs.layers import Layer, Tables, place_of
from configs.published import is_foreign
from schemas.digests import parse_json
from schemas.passwords import NO_PASSWORD, encode_spaces, has_password, redacted
from schemas.places import OUTPUT_PACKAGES, is_plain_path, is_remote, missing_package, plain_place

WILDCARDS = "*?["

Place = Callable[..., str]
"""Returns how messages name a value, or an entry of a list by its index."""


def check_places(tables: Tables, *, layers: Sequence[Layer], needs_sources: bool) -> Iterator[str]:
    """Yield a line for every place that cannot be used.

    Args:
        tables: The merged tables; values of a wrong type are passed over, as they were reported.
        layers: The layers that were merged, for the places to name.
        needs_sources: Whether the command reads sources.
    """
    run = tables.get("run", {})
    sources, out, tokenizer = run.get("sources", ()), run.get("out"), run.get("tokenizer")
    sources = sources if needs_sources and isinstance(sources, tuple) else ()
    sources = [plain_place(source) if isinstance(source, str) else source for source in sources]
    if needs_sources and not run.get("sources"):
        yield "no sources: name directories, globs or archives, or set sources in [run] of the --config file"
    yield from _check_sources(sources, partial(place_of, layers, "run", "sources"))
    if out is None:
        yield "no output folder: give --out DIR, or out in [run] of the --config file"
    if isinstance(out, str) and out:
        yield from _check_out(out, sources, partial(place_of, layers, "run", "out"))
    if isinstance(tokenizer, str) and tokenizer:
        if is_remote(tokenizer):
            yield from _check_url(tokenizer, partial(place_of, layers, "run", "tokenizer"))
        else:
            yield from _check_tokenizer(Path(tokenizer), layers)
        yield from _check_given(run, layers)
    yield from _check_vocab(run.get("vocab"), layers)


def _check_sources(sources: Sequence[object], place: Place) -> Iterator[str]:
    for index, source in enumerate(sources):
        if isinstance(source, str) and is_remote(source):
            yield from _check_url(source, partial(place, index=index))
        if _is_local(source) and not any(character in source for character in WILDCARDS) and not Path(source).exists():
            yield f"{place(index=index)}: no such file or folder"


def _check_out(out: str, sources: Sequence[object], place: Place) -> Iterator[str]:
    if is_remote(out):
        yield from _check_remote_out(out, sources, place)
        return
    folder = Path(out)
    blocking = next((path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), None)
    if blocking is not None:
        yield f"{place()}: {blocking} is a file; it takes a folder, new or of an earlier run"
    if not _is_utf8(os.fspath(folder.absolute())):
        yield f"{place()}: not allowed; its path is not UTF-8, as Arrow needs it"
    for source in filter(_is_local, sources):
        clash = _clash(Path(os.path.realpath(folder)), Path(os.path.realpath(source)))
        if clash:
            yield f"{place()}: {clash.format(source=source)}; choose a folder apart from the sources"


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_remote_out(out: str, sources: Sequence[object], place: Place) -> Iterator[str]:
    if has_password(encode_spaces(out)):
        yield f"{redacted(place())}: {NO_PASSWORD}"
        return
    scheme, _, path = out.partition("://")
    if scheme not in OUTPUT_PACKAGES or not path.strip("/").count("/"):
        places = ", ".join(f"{known}://BUCKET/PREFIX" for known in OUTPUT_PACKAGES)
        yield f"{place()}: not allowed; it takes a local or mounted folder, or {places}"
    elif not is_plain_path(path.rstrip("/")):
        yield f"{place()}: not allowed; a name between its slashes is empty, too long, '.' or '..'"
    else:
        yield from _check_url(out, place)
    for source in sources:
        if isinstance(source, str) and source.startswith(f"{scheme}://"):
            clash = _clash(PurePosixPath(path), PurePosixPath(source.partition("://")[2]))
            if clash:
                yield f"{place()}: {clash.format(source=source)}; choose a prefix apart from the sources"


def _check_url(url: str, place: Place) -> Iterator[str]:
    missing = missing_package(url)
    if missing:
        yield f"{place()}: {missing}"


READS_ITSELF = "it lies inside the source {source}, so the run would read its own output"
"""Why an output folder cannot be where it is."""


def place_in(source: PurePath, out: PurePath) -> PurePath | None:
    """Return where an output lies in a source; None if it is elsewhere, or in a hidden folder, which is not read."""
    if not out.is_relative_to(source):
        return None
    place = out.relative_to(source)
    return None if any(part.startswith(".") for part in place.parts) else place


def _clash(out: PurePath, source: PurePath) -> str | None:
    """Return why output and source cannot be where they are."""
    if place_in(source, out) is not None:
        return READS_ITSELF
    if source.is_relative_to(out):
        return "the source {source} lies inside it"
    return None


def _check_tokenizer(folder: Path, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield what is wrong with a tokenizer directory: no manifest, or another size than the one that was asked for.

    What another program made is left to the adoption.
    """
    place = place_of(layers, "run", "tokenizer")
    try:
        manifest = parse_json((folder / "manifest.json").read_bytes())
        vocab_size = int(manifest["vocab_size"])
    except OSError:
        if not is_foreign(folder):
            yield f"{place}: no tokenizer; it takes a directory with a manifest.json, as a run leaves in OUT/tokenizer"
        return
    except (ValueError, KeyError, TypeError):
        yield f"{place}: its manifest.json is damaged: no vocab_size can be read"
        return
    yield from (
        f"{layer.place('build', 'vocab_size')}: the tokenizer {folder} has {vocab_size:,} ids; leave it out"
        for layer in layers[1:]
        if layer.table("build").get("vocab_size", vocab_size) != vocab_size
    )


def _check_given(run: Mapping[str, Any], layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for each option that a given tokenizer leaves without effect."""
    for key in ("rebuild_tokenizer", "vocab"):
        if run.get(key):
            yield f"{place_of(layers, 'run', key)}: a given tokenizer is not built; leave it out, or --tokenizer"


def _check_vocab(vocab: object, layers: Sequence[Layer]) -> Iterator[str]:
    place = partial(place_of, layers, "run", "vocab")
    if isinstance(vocab, str) and is_remote(vocab):
        yield from _check_url(vocab, place)
    elif isinstance(vocab, str) and vocab and not (Path(vocab) / "ids.lock").is_file():
        yield f"{place()}: no vocabulary; it takes a folder that `cppmill vocab init` made, or the tokenizer of a run"


def _is_local(source: object) -> TypeGuard[str]:
    return isinstance(source, str) and bool(source) and not is_remote(source)
