"""The strict build of the site: pages are gathered, Zensical renders them, and what it does not check is checked here.

Zensical checks links to pages and to headings. It does not check links to other files, nor what HTML shows, and what
griffe warns of in docstrings does not fail its builds.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

from deploy.site.pages import ROOT, navigation, write_pages
from schemas.errors import CppmillError

SETTINGS = Path(__file__).parent / "zensical.yml"

_TARGET = re.compile(r'<(?:a|img|link|script|iframe)\b[^>]*?\s(?:href|src)="([^"#?]+)')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class SiteError(CppmillError):
    """A page that cannot be rendered, or that links to nothing."""


def build_site(folder: Path) -> None:
    """Build the site.

    Args:
        folder: Where the site goes; it is made anew.

    Raises:
        SiteError: A page is in no section, cannot be rendered, or links to a page, heading or file that is missing.
    """
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        pages = write_pages(project / "pages")
        entries = json.dumps(navigation(pages))
        if lost := [page for page in pages if json.dumps(page) not in entries]:
            raise SiteError(f"pages in no section of the site; move them into a folder of one: {', '.join(lost)}")
        (project / SETTINGS.name).write_text(f"{SETTINGS.read_text()}nav: {entries}\n")
        _render(project)
        if missing := missing_targets(project / "html"):
            raise SiteError("links to files that are missing:\n" + "\n".join(missing))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(project / "html", folder)


def _render(project: Path) -> None:
    """Let Zensical build a project; a warning of it or of griffe is an error."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(project / SETTINGS.name)]
    paths = [str(ROOT), str(ROOT / "native/py/python"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    output = _COLOUR.sub("", done.stdout)
    if done.returncode or re.search("^griffe: ", output, re.MULTILINE):
        raise SiteError(f"zensical build --strict ended with {done.returncode}:\n{output}")


def missing_targets(site: Path) -> list[str]:
    """Return the links of a site to files that it does not have, as `page: link`, sorted.

    Args:
        site: Its folder. 404.html is left out: a server shows it at any place, so its links are not relative.
    """
    return sorted(
        f"{page.relative_to(site)}: {link}"
        for page in set(site.rglob("*.html")) - {site / "404.html"}
        for link in {html.unescape(link) for link in _TARGET.findall(page.read_text())}
        if not re.match(r"\w+:|//", link) and not (page.parent / unquote(link)).is_file()
    )
