"""Pages: templates beside this file, each rendered to one HTML file that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from configs.outputs import check_file
from schemas.errors import ConfigError
from schemas.files import write_file
from schemas.printing import printable
from schemas.resources import explaining_refusals

_HEAD_BYTES = 4096


def render_page(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template takes
    """Return a page.

    Args:
        template: Name of the file.
        values: What the template shows; text is escaped.

    Raises:
        jinja2.TemplateError: If a value is missing.
    """
    environment = Environment(
        loader=PackageLoader("pipelines", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    return environment.get_template(template).render(values)


def _shown(value: Any) -> Any:  # noqa: ANN401 - whatever the template shows
    """Return a text with escapes for what would turn the direction of writing; markup and other values as they are."""
    return printable(value) if type(value) is str else value


def check_page(page: Path, *, option: str) -> None:
    """Check that a page can be written at a path, and that nothing else is there.

    Args:
        page: The file.
        option: The option that named it, for the message.

    Raises:
        ConfigError: If it cannot, or is a file that is no page.
    """
    check_file(page, option=option)
    if page.is_file() and page.stat().st_size and not _is_page(page):
        raise ConfigError(f"{option} {page}: it exists, and is not a page of cppmill; name another file")


def _is_page(page: Path) -> bool:
    with page.open("rb") as file:
        return b"cppmill</title>" in file.read(_HEAD_BYTES)


def write_page(html: str, file: Path, *, option: str) -> str:
    """Write a page; what is in a name of a file that is not UTF-8 is written as escapes.

    Args:
        html: The page.
        file: Where to.
        option: What named the file, for messages.

    Returns:
        What to print of it: the file, and its size.

    Raises:
        ConfigError: If the file cannot be written.
        ResourceError: If there is no space for it.
    """
    data = html.encode("utf-8", "backslashreplace")
    write_output(data, file, option=option)
    return f"{file}: {len(data) / 1e6:.1f} MB".encode("utf-8", "backslashreplace").decode()


def write_output(data: bytes, file: Path, *, option: str) -> None:
    """Write a file that an option named, whole or not at all.

    Args:
        data: Its content.
        file: Where to.
        option: What named the file, for messages.

    Raises:
        ConfigError: If the file cannot be written.
        ResourceError: If there is no space for it.
    """
    try:
        with explaining_refusals():
            write_file(file, data)
    except OSError as error:
        raise ConfigError(
            f"{option} {file}: cannot be written: {error.strerror}; name a file in a folder that is there"
        ) from error
