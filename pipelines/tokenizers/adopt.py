"""The program of `cppmill adopt`: it makes a tokenizer directory from another program's tokenizer."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import cppmill_core
from cppmill_core.adoption import find_source, write_directory
from cppmill_core.manifests import BOS, EOS, MANIFEST

from configs.outputs import check_parent
from schemas.errors import ConfigError

_HOSTILE = (bytes(range(256)), b"  a\t\r\n", "\u2581 \ufffd\u00e9\U0001f600".encode(), b"<EOS><s>\x00\xf0\xe2\x96\x81")
"""What a tokenizer must give back before it is taken."""


def adopt_tokenizer(source: Path, out: Path, *, bos: str | None = None, eos: str | None = None) -> list[str]:
    """Write a tokenizer directory.

    Args:
        source: A `.model`, a `tokenizer.json`, or a folder with one of them.
        out: The directory to make; it may be there if it is empty.
        bos: Name of the control token for `<BOS>`; the source's own by default.
        eos: The same for `<EOS>`.

    Returns:
        What to print, a few lines.

    Raises:
        ConfigError: If the source is not a tokenizer, is a tokenizer directory already, or loses text, or out is taken.
    """
    if (source / MANIFEST).is_file():
        raise ConfigError(f"{source}: a tokenizer directory already, with a {MANIFEST}; use it as it is")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"--out {out}: it exists already; name a new folder")
    check_parent(out, option="--out")
    staged = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        lines = _write(source, staged, bos=bos, eos=eos)
        staged.chmod(0o755)
        staged.replace(out)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return lines


def _write(source: Path, staged: Path, *, bos: str | None, eos: str | None) -> list[str]:
    try:
        found = find_source(source).with_ends({BOS: bos, EOS: eos})
        write_directory(found, staged)
        tokenizer = cppmill_core.load_tokenizer(staged)
    except (OSError, cppmill_core.CoreError, ImportError) as error:
        raise ConfigError(str(error)) from error
    decoded = tokenizer.decode_batch(tokenizer.encode_batch(_HOSTILE)).to_pylist()
    for text, back in zip(_HOSTILE, decoded, strict=True):
        if text != back:
            raise ConfigError(f"{source}: text would not come back as it was: {text!r} comes back as {back!r}")
    return _describe(tokenizer, found.manifest["kind"])


def _describe(tokenizer: cppmill_core.AnyTokenizer, kind: str) -> list[str]:
    program = (
        "the native core"
        if isinstance(tokenizer, cppmill_core.Tokenizer)
        else kind.replace("hugging-face", "tokenizers")
    )
    return [
        f"{kind}: {tokenizer.vocab_size:,} ids, run by {program}",
        *(_end(tokenizer, name) for name in (BOS, EOS)),
        f"tokenizer {tokenizer.digest}",
    ]


def _end(tokenizer: cppmill_core.AnyTokenizer, name: str) -> str:
    key = name.strip("<>").lower()
    try:
        return f"{name} is id {tokenizer.control_id(name)}"
    except cppmill_core.InvalidInputError:
        return f"{name} is missing: adopt it again with --{key} NAME, or set {key} = false in [tokenize]"
