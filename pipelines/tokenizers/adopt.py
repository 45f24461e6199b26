"""The program of `cppmill adopt`: it makes a tokenizer directory from another tokenizer.

From the files of another program, or from a tokenizer directory, whose template it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cppmill_core
from cppmill_core.manifests import MANIFEST, read_manifest

from configs.outputs import check_parent
from pipelines.stages.given import resolve_source, write_adopted
from schemas.errors import ConfigError, VocabularyConfigError
from schemas.files import new_folder
from schemas.options import HfTemplate
from schemas.printing import one_line
from schemas.resources import naming_file
from tokenizer_build.artifact import copy_with_template

_TEMPLATED = "a tokenizer directory that a build wrote, and only those have a template"


def adopt_tokenizer(
    source: Path,
    out: Path,
    *,
    bos: str | None = None,
    eos: str | None = None,
    template: HfTemplate | None = None,
    allow_lossy: bool = False,
) -> list[str]:
    """Write a tokenizer directory.

    Args:
        source: A `.model`, a `tokenizer.json`, a folder with one of them, or a short name of `FETCHED`; with a
            template, a tokenizer directory that a build wrote.
        out: The directory to make; it may be there if it is empty.
        bos: Name of the control token for `<BOS>`; the source's own by default.
        eos: The same for `<EOS>`.
        template: What `tokenizers` and `transformers` are to put around a text.
        allow_lossy: Take a SentencePiece model that loses text, and keep the normaliser NFC of a `tokenizer.json`.

    Returns:
        What to print, a few lines.

    Raises:
        ConfigError: If the source is not what is taken, loses text or has no token that the template needs, or out is
            taken.
    """
    source = resolve_source(source)
    _check_source(source, ends=(bos, eos), template=template)
    if template is None:
        return _publish(out, lambda staged: write_adopted(source, staged, bos=bos, eos=eos, allow_lossy=allow_lossy))
    return _publish(out, lambda staged: _change_template(source, staged, template, out))


def _publish(out: Path, write: Callable[[Path], list[str]]) -> list[str]:
    """Let `write` make a folder, and give it its name once it is finished."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"--out {out}: it exists already; name a new folder")
    check_parent(out, option="--out")
    with new_folder(out, lambda reason: ConfigError(f"--out {out}: {reason}")) as staged, naming_file(str(out), staged):
        return write(staged)


def _check_source(source: Path, *, ends: tuple[str | None, str | None], template: HfTemplate | None) -> None:
    """Refuse a tokenizer directory without a template, and a template for anything else."""
    is_directory = (source / MANIFEST).is_file()
    if is_directory and template is None:
        raise ConfigError(
            f"{source}: a tokenizer directory already, with a {MANIFEST}; use it as it is, or name a template with "
            "--hf-template"
        )
    if template is not None and not is_directory:
        raise ConfigError(f"{source}: not {_TEMPLATED}")
    if template is not None and ends != (None, None):
        raise ConfigError(f"{source}: its <BOS> and <EOS> have these names; leave out --bos and --eos")


def _change_template(source: Path, staged: Path, template: HfTemplate, out: Path) -> list[str]:
    """Write a copy with another template, and return what it is; `out` is its name for users."""
    from tokenizer_build.own import split_files  # what trains comes with it

    try:
        with naming_file(str(out), staged):
            _, manifest = read_manifest(source, None)
            if "kind" in manifest:
                raise ConfigError(f"{source}: not {_TEMPLATED}")
            names, others = split_files(source)
            digest = copy_with_template(source, names, template, staged)
            tokenizer = cppmill_core.load_tokenizer(staged, digest)
    except (OSError, cppmill_core.CoreError, VocabularyConfigError) as error:
        raise ConfigError(str(error)) from error
    left = [f"not copied, as it is no part of the tokenizer: {', '.join(map(one_line, others))}"] if others else []
    return [
        f"template {template}: {tokenizer.vocab_size:,} ids, the same as in {source}",
        f"tokenizer {digest}",
        *left,
    ]
