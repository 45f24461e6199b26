"""The pages of the site, written into a folder from which a builder of sites makes it.

docs/ has most of them, notebooks among them. Some come from elsewhere in the repository; the reference of commands,
options and the API is generated. People also read the same files on a code forge, where links follow places in the
repository. In the folder such a link leads to the page, or to a copy of the file.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from deploy.site.notebooks import SUFFIX, to_markdown
from deploy.site.reference import commands_page, options_page

ROOT = Path(__file__).parents[2]

OUTSIDE = {
    "README.md": "index.md",
    "configs/vocab/README.md": "reference/vocabulary.md",
    "CHANGELOG.md": "explanation/changelog.md",
    "deploy/README.md": "how-to/deploying.md",
}
"""Pages from outside of docs/, by their place in the repository."""

SECTIONS = {"Tutorials": "tutorials", "How-to guides": "how-to", "Reference": "reference", "Explanation": "explanation"}
"""The sections of the navigation and the folders of their pages."""

FIRST = ("first-dataset", "after-the-demo", "notebook", "running", "options", "commands", "design")
"""Pages that come first in their section; the others follow by name."""

ASSETS = Path(__file__).parent / "assets"
"""A style and a script of every page."""

Entry = str | dict[str, Any]
"""A page of the navigation, or a section by its heading, as in mkdocs.yml."""

PACKAGES = {
    "Library": "pipelines/library",
    "Transforms of Beam": "pipelines/library/beam",
    "Training code": "native/py/python/cppmill_core",
    "What stages agree on": "schemas",
}
"""Packages of the API reference, by heading: a page a module."""

_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"(^ {4}.*$|^```[\s\S]*?^```$|`[^`\n]+`)", re.MULTILINE)


def write_pages(folder: Path) -> list[str]:
    """Write every page of the site, and what pages show and link to; return the paths of the pages in the folder.

    Args:
        folder: Where to write; it is made anew.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    shutil.copytree(ASSETS, folder / "assets", dirs_exist_ok=True)
    places = {page.relative_to(folder).as_posix(): page for page in folder.rglob("*.md")}
    places |= {name: ROOT / place for place, name in OUTSIDE.items()}
    texts = {name: source.read_text() for name, source in places.items()}
    texts |= {page_of(path.relative_to(folder).as_posix()): to_markdown(path) for path in folder.rglob(f"*{SUFFIX}")}
    pages = {name: link_pages(text, name, folder) for name, text in texts.items()}
    api = [name for package in PACKAGES.values() for name in modules(package)]
    pages |= {_api_page(name): f"# {name}\n\n::: {name}\n" for name in api}
    pages |= {"reference/commands.md": commands_page(), "reference/options.md": options_page()}
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return sorted(pages)


def link_pages(markdown: str, page: str, folder: Path) -> str:
    """Return a page with links that lead to pages, or to copies of files of the repository, which are added.

    Args:
        markdown: The page as it is in the repository.
        page: Its path in the folder.
        folder: The pages of the site.
    """
    place = repository_place(page)

    def rewrite(match: re.Match[str]) -> str:
        before, link, anchor, after = match.groups(default="")
        target = site_place(place, link)
        if target is None:
            return match[0]
        if target.startswith("source/"):
            target = _add_source(target, folder)
        return f"{before}{posixpath.relpath(target, posixpath.dirname(page) or '.')}{anchor}{after}"

    parts = _CODE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(rewrite, part) for number, part in enumerate(parts))


def _add_source(target: str, folder: Path) -> str:
    """Add a copy of a file of the repository, or of a folder's files and a list of them; return where it is."""
    source = ROOT / target.removeprefix("source/")
    if source.is_dir():
        found = (path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
        names = sorted(path.relative_to(source).as_posix() for path in found)
        for name in names:
            _add_source(f"{target}/{name}", folder)
        listing = "".join(f'<li><a href="{name}">{name}</a></li>' for name in names)
        target = f"{target}/index.html"
        (folder / target).write_text(f"<!doctype html><ul>{listing}</ul>")
    elif source.is_file():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / target)
    return target


def navigation(pages: list[str]) -> list[Entry]:
    """Return the navigation of the pages that there are, in the form of mkdocs.yml.

    Args:
        pages: Their paths in the site, `api/` among them.

    Example:
        >>> navigation(["index.md", "how-to/show.md"])
        ['index.md', {'How-to guides': ['how-to/show.md']}]
    """
    found: dict[str, list[Any]] = {
        section: sorted((page for page in pages if page.startswith(f"{folder}/")), key=_order)
        for section, folder in SECTIONS.items()
    }
    api = {
        heading: [{module: _api_page(module)} for module in modules(package) if _api_page(module) in pages]
        for heading, package in PACKAGES.items()
    }
    found["API"] = [{heading: entries} for heading, entries in api.items() if entries]
    return ["index.md", *({section: entries} for section, entries in found.items() if entries)]


def _order(page: str) -> tuple[int, str]:
    name = posixpath.basename(page).removesuffix(".md")
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def modules(package: str) -> list[str]:
    """Return the names of a package and of its public modules, sorted.

    Args:
        package: Its folder, in the repository.
    """
    folder = ROOT / package
    names = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    package = package.removeprefix("native/py/python/").replace("/", ".")
    return [package, *(f"{package}.{name}" for name in names)]


def repository_place(page: str) -> str:
    """Return where in the repository a page of the site comes from."""
    outside = {name: place for place, name in OUTSIDE.items()}
    return outside.get(page, f"docs/{page}")


def site_place(place: str, link: str) -> str | None:
    """Return the path in the site that a link leads to; None if it does not lead to a file of the repository.

    Args:
        place: The linking file, in the repository.
        link: A relative path or a URL.

    Example:
        >>> site_place("README.md", "docs/how-to/running.md")
        'how-to/running.md'
        >>> site_place("docs/explanation/LOG.md", "../../configs/vocab/README.md")
        'reference/vocabulary.md'
    """
    if "://" in link or link.startswith("mailto:"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    for name in (target, f"{target}/README.md"):
        if name in OUTSIDE:
            return OUTSIDE[name]
    return page_of(target.removeprefix("docs/")) if target.startswith("docs/") else f"source/{target}"


def page_of(place: str) -> str:
    """Return the page of a file of docs/: itself, or for a notebook the one that shows it.

    Example:
        >>> page_of("tutorials/notebook.ipynb")
        'tutorials/notebook.md'
    """
    return place.removesuffix(SUFFIX) + ".md" if place.endswith(SUFFIX) else place


def _api_page(module: str) -> str:
    return f"api/{module}.md"
