"""What is given to a run by place: the URLs that it reads, and its tokenizer.

URLs are asked before anything starts: is it there, and do the credentials allow reading it? A tokenizer of another
program is adopted first; `make engines NAME=tokenizers` fetches published ones into the cache, where they have short
names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import cppmill_core
from cppmill_core.manifests import BOS, EOS, LOSSY, MANIFEST, TOKENIZER

from configs.places import READS_ITSELF, place_in
from configs.published import is_published
from configs.runs import RunConfig
from pipelines.engines.cache import engine_path
from pipelines.stages.platforms import read_platforms
from schemas.errors import ConfigError, ResourceError
from schemas.places import is_remote, plain_place
from schemas.resources import explain_refusal
from schemas.units import RECEIPT_FOLDERS, Stage, is_unit_receipt
from transforms.records.receipts import RECEIPT
from transforms.records.versions import follow_current
from transforms.sources.globs import Glob, is_glob, split_glob
from transforms.sources.listing import Listing, check_source
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import temporary_folder

_HOSTILE = (bytes(range(256)), b"  a\t\r\n", "\u2581 \ufffd\u00e9\U0001f600".encode(), b"<EOS><s>\x00\xf0\xe2\x96\x81")
"""What a tokenizer must give back before it is taken."""

_WRITTEN = (
    *(RECEIPT, "receipt.json.sig", "platform_vocab.json", "documents/part-0.parquet", "documents/rejects-0.parquet"),
    *("tokens/part-0.parquet", "counts/terms.parquet", "counts/words/part-0.parquet", "tokenizer/tokenizer.json"),
    *("tokenizer/vocab.tsv", "tokenizer/decisions.txt", "tokenizer/findings.md", "tokenizer/ids.lock"),
    *("units/documents/_unit-0.json", "tokenizer/_unit-0.json"),
)
"""Names as those of the files that a run writes, of each kind."""

_BUILT = ("decisions.parquet", "vocab.tsv")
"""What every build writes, and what is not found in the directory of another program."""

_WHOLE = (
    "texts are neither truncated nor padded, as its file tells tokenizers to: "
    "its `no_truncation()` and `no_padding()` give the same ids"
)

_NFC_LEFT_OUT = (
    "its normaliser NFC is left out, so text that is not in NFC has other ids than in tokenizers; "
    "--allow-lossy keeps it, and counts what does not come back"
)


def check_urls(config: RunConfig) -> None:
    """Check the sources, the tokenizer and the platforms of a run that are URLs, with a request or two each.

    Raises:
        ConfigError: If one does not exist, its package is not installed, or a platform cannot be used.
        StoreError: If a store fails, or refuses the credentials.
    """
    for source in map(str, config.sources):
        if is_remote(source):
            check_source(source)
    tokenizer = str(config.tokenizer or "")
    if is_remote(tokenizer) and not OutputFolder(follow_current(tokenizer)).exists(MANIFEST):
        raise no_tokenizer(tokenizer)
    if is_remote(str(config.platforms or "")):
        read_platforms(config.platforms)


def check_own_output(config: RunConfig) -> None:
    """Check that no source takes what the run writes, and that no benchmark has any of it.

    Raises:
        ConfigError: Naming the first that does.
    """
    out = str(config.out)
    for source in map(plain_place, map(str, config.sources)):
        if _has_output(source, out):
            raise _reads_itself(out, source)
    for place in map(plain_place, config.options.ingest.decontaminate):
        inside = _place_in(out, place) is not None
        if inside or _has_output(place, out):
            raise ConfigError(
                f"--decontaminate {place}: it {'lies in' if inside else 'has files of'} --out {out}, where the run "
                "writes; copy the benchmark elsewhere"
            )


def check_listed(listing: Listing, config: RunConfig) -> None:
    """Check that no listed file is one that the run writes.

    Raises:
        ConfigError: Naming the source.
    """
    out = str(config.out)
    for number, root in enumerate(listing.roots):
        below = _place_in(root.location, out)
        if below is not None:
            paths = (item.path for item in listing.inputs if item.source == number)
            if any(path.startswith(f"{below}/") for path in paths):
                raise _reads_itself(out, config.sources[number])


def _place_in(folder: str, place: str) -> str | None:
    """Return where a place is in a folder, each a path or a URL; None if it is elsewhere or hidden in it."""
    if _scheme(folder) != _scheme(place):
        return None
    outer, inner = (
        PurePosixPath(text.partition("://")[2] if is_remote(text) else os.path.realpath(text))
        for text in (folder, place)
    )
    below = place_in(outer, inner)
    return None if below is None else below.as_posix()


def _has_output(place: str, out: str) -> bool:
    """Return whether a folder, or what a pattern takes, has files that a run writes in OUT."""
    folder, pattern = split_glob(place) if is_glob(place) else (place, "*")
    below = _place_in(folder or ".", out)
    return below is not None and any(map(Glob(pattern).takes, (f"{below}/{name}" for name in _WRITTEN)))


def _scheme(place: str) -> str:
    return place.partition("://")[0] if is_remote(place) else ""


def _reads_itself(out: str, source: Path | str) -> ConfigError:
    return ConfigError(f"--out {out}: {READS_ITSELF.format(source=source)}; choose a folder apart from the sources")


def no_tokenizer(place: Path | str) -> ConfigError:
    """Return the error for a place that is given as a tokenizer directory and is none."""
    return ConfigError(f"--tokenizer {place}: there is no {MANIFEST} in it; give a directory that `cppmill build` made")


@contextmanager
def open_given(place: Path | str) -> Iterator[Path]:
    """Open the tokenizer directory that `--tokenizer` gives; what another program made is adopted in a private folder.

    Args:
        place: A tokenizer directory, local or a URL; or a source of `write_adopted`.

    Raises:
        ConfigError: If it is neither.
    """
    source = resolve_source(Path(place)) if not is_remote(str(place)) else place
    if isinstance(source, Path) and not (source / MANIFEST).is_file():
        with temporary_folder() as folder:
            write_adopted(source, Path(folder))
            yield Path(folder)
        return
    with OutputFolder(follow_current(str(source))).open_local_folder("") as opened:
        if not (opened / MANIFEST).is_file():
            raise no_tokenizer(place)
        yield opened


def check_foreign(source: Path) -> None:
    """Check that what is taken for another program's is no tokenizer directory of ours that lost its manifest.

    Raises:
        ConfigError: Naming a file in it that only a build writes.
    """
    is_folder = source.is_dir() and not (source / MANIFEST).is_file()
    for path in sorted(source.iterdir()) if is_folder else ():
        if path.name in _BUILT or is_unit_receipt(f"{RECEIPT_FOLDERS[Stage.BUILD]}/{path.name}", Stage.BUILD):
            raise ConfigError(
                f"{source}: {MANIFEST} is missing, and {path.name} says that cppmill built it; restore the directory "
                f"or build again, or give the path of its {TOKENIZER} to take that as the tokenizer of another program"
            )


def resolve_source(source: Path) -> Path:
    """Return the folder of a fetched tokenizer if `source` is a short name and nothing here has that name.

    Raises:
        ConfigError: If it has not been fetched.
    """
    return engine_path("tokenizers") / source.name if is_published(source) else source


def write_adopted(
    source: Path, folder: Path, *, bos: str | None = None, eos: str | None = None, allow_lossy: bool = False
) -> list[str]:
    """Write the tokenizer of another program as a tokenizer directory, the same bytes each time.

    Args:
        source: A `.model`, a `tokenizer.json`, or a folder with one of them.
        folder: An existing, empty folder.
        bos: Name of the control token for `<BOS>`; the source's own by default.
        eos: The same for `<EOS>`.
        allow_lossy: Take a SentencePiece model that loses text, and keep the normaliser NFC of a `tokenizer.json`.

    Returns:
        What to print, a few lines.

    Raises:
        ConfigError: If the source is not what is taken, is one of ours that lost its manifest, or loses text.
    """
    from cppmill_core.adoption import find_source, write_directory  # few runs take the tokenizer of another program

    check_foreign(source)
    try:
        found = find_source(source, allow_lossy=allow_lossy).with_ends({BOS: bos, EOS: eos})
        write_directory(found, folder)
        tokenizer = cppmill_core.load_tokenizer(folder)
    except (OSError, cppmill_core.CoreError, ImportError) as error:
        reason = explain_refusal(error, where=str(folder))
        if reason is not None:
            raise ResourceError(reason) from error
        raise ConfigError(str(error).replace(str(folder / TOKENIZER), str(source))) from error
    lines, lossy = _describe(tokenizer, found.manifest["kind"]), found.manifest.get(LOSSY)
    lines += [_WHOLE] if found.cuts else []
    if lossy:
        return [*lines, f"lossy: {'; '.join(lossy)}", "receipts count the documents that do not decode to their bytes"]
    decoded = tokenizer.decode_batch(tokenizer.encode_batch(_HOSTILE)).to_pylist()
    for text, back in zip(_HOSTILE, decoded, strict=True):
        if text != back:
            raise ConfigError(f"{source}: it would lose text: {text!r} decodes to {back!r}")
    return [*lines, _NFC_LEFT_OUT] if found.leaves_out_nfc else lines


def _describe(tokenizer: cppmill_core.AnyTokenizer, kind: str) -> list[str]:
    from cppmill_core.adoption import program_of

    return [
        f"{kind}: {tokenizer.vocab_size:,} ids, run by {program_of(tokenizer)}",
        *(_end(tokenizer, name) for name in (BOS, EOS)),
        f"tokenizer {tokenizer.digest}",
    ]


def _end(tokenizer: cppmill_core.AnyTokenizer, name: str) -> str:
    key = name.strip("<>").lower()
    try:
        return f"{name} is id {tokenizer.control_id(name)}"
    except cppmill_core.InvalidInputError:
        return f"{name} is missing: adopt it again with --{key} NAME, or set {key} = false in [tokenize]"
