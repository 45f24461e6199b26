"""Hooks of MkDocs: pages from outside of docs/, the navigation, and one API page for each module.

People also read the same files on a code forge, where links follow places in the repository. Here such a link leads to
the page, or to a copy of the file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

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

FIRST = ("first-dataset", "after-the-demo", "running", "options", "commands", "design")
"""Pages that come first in their section; the others follow by name."""

STYLE = ".md-grid { max-width: 90rem; }"
"""Tables and printed lines are wide."""

PACKAGES = {"Training code": "native/py/python/cppmill_core", "What stages agree on": "schemas"}
"""Packages of the API reference, by heading: a page a module."""

_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"(^ {4}.*$|^```[\s\S]*?^```$|`[^`\n]+`)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of docs/ and the API pages, and make the navigation of all that there are."""
    for place, name in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / place)))
    for module in (module for package in PACKAGES.values() for module in modules(package)):
        files.append(File.generated(config, _api_page(module), content=f"# {module}\n\n::: {module}\n"))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    files.append(File.generated(config, "reference/options.md", content=options_page()))
    files.append(File.generated(config, "assets/wide.css", content=STYLE))
    config.nav = navigation([file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to pages, or to copies of files of the repository, which are added."""
    place = repository_place(page.file.src_uri)

    def rewrite(match: re.Match[str]) -> str:
        before, link, anchor, after = match.groups(default="")
        target = site_place(place, link)
        if target is None:
            return match[0]
        if target.startswith("source/"):
            target = _add_source(target, files, config)
        return f"{before}{posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or '.')}{anchor}{after}"

    parts = _CODE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(rewrite, part) for number, part in enumerate(parts))


def _add_source(target: str, files: Files, config: MkDocsConfig) -> str:
    """Add a copy of a file of the repository, or of a folder's files and a list of them; return where it is."""
    source = ROOT / target.removeprefix("source/")
    if source.is_dir():
        found = (path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
        names = sorted(path.relative_to(source).as_posix() for path in found)
        for name in names:
            _add_source(f"{target}/{name}", files, config)
        listing = "".join(f'<li><a href="{name}">{name}</a></li>' for name in names)
        target = f"{target}/index.html"
        if files.get_file_from_path(target) is None:
            files.append(File.generated(config, target, content=f"<!doctype html><ul>{listing}</ul>"))
    elif source.is_file() and files.get_file_from_path(target) is None:
        files.append(File.generated(config, target, abs_src_path=str(source)))
    return target


def navigation(pages: list[str]) -> list[Any]:
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
    return [folder.name, *(f"{folder.name}.{name}" for name in names)]


def repository_place(page: str) -> str:
    """Return where in the repository a page of the site comes from."""
    outside = {name: place for place, name in OUTSIDE.items()}
    return outside.get(page, f"docs/{page}")


def site_place(place: str, link: str) -> str | None:
    """Return the path in the site that a link leads to; None if it is none to a file of the repository.

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
    return target.removeprefix("docs/") if target.startswith("docs/") else f"source/{target}"


def _api_page(module: str) -> str:
    return f"api/{module}.md"
