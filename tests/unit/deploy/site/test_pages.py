"""The documentation site: its pages, its navigation, and the strict build of what is in docs/."""

from __future__ import annotations

import contextlib
import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from deploy.site import building, pages
from deploy.site.__main__ import main
from deploy.site.pages import OUTSIDE, modules, navigation, repository_place, site_place


class Fetched(HTMLParser):
    """What a page fetches as it opens."""

    def __init__(self, text):
        super().__init__()
        self.urls = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        if tag == "link" and names.get("rel") not in ("prev", "next", "canonical"):
            self.urls.append(names["href"])
        elif tag in ("script", "img", "iframe") and "src" in names:
            self.urls.append(names["src"])


def build(checkout, target):
    """Run `make docs` in a checkout, with what is installed here; not as part of another make."""
    command = [
        "make",
        "--old-file=setup",
        "--old-file=.venv/.stamps/docs",
        "docs",
        f"BIN={Path(sys.executable).parent}",
        f"SITE={target}",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory):
    """The site of this checkout; it takes ten seconds, so its tests run with those of engines."""
    folder = tmp_path_factory.mktemp("site") / "built"
    done = build(repository, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.engines
def test_every_page_is_in_the_navigation(site, repository):
    text = (site / "index.html").read_text()
    links = re.findall(r'<a href="(?:\./)?([^"]+)" class="md-nav__link', text)
    docs = repository / "docs"
    names = [page.relative_to(docs).with_suffix("").as_posix() for page in docs.rglob("*.md")]
    assert len(names) > 10
    outside = ["reference/vocabulary", "explanation/changelog", "how-to/deploying"]
    for name in [*names, *outside, "api/cppmill_core", "api/schemas.tables"]:
        assert f"{name}.html" in links, name


@pytest.mark.engines
def test_the_api_pages_have_the_docstrings_of_the_native_core(site):
    text = (site / "api" / "cppmill_core.html").read_text()
    assert 'id="cppmill_core.Tokenizer.encode_parts"' in text
    assert "Control('FIM_PREFIX')" in html.unescape(re.sub(r"<[^>]+>", "", text))


@pytest.mark.engines
def test_opening_a_page_fetches_nothing_from_elsewhere(site):
    fetched = {url for page in site.rglob("*.html") for url in Fetched(page.read_text()).urls}
    assert len(fetched) > 3
    assert [url for url in fetched if re.match(r"\w+:|//", url)] == []
    styles = "".join(page.read_text() for page in site.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:\w+:)?//[^)]*|@import", styles) == []


@pytest.mark.engines
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_search_finds_pages_of_a_site_opened_from_disk(site, browser, scheme):
    page = browser.new_page(color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "how-to" / "running.html").as_uri())
    page.keyboard.press("/")
    page.get_by_placeholder("Search").last.fill("superwords")
    assert int(page.get_by_text(re.compile(r"^\d+ results$")).inner_text().split()[0]) > 10
    assert said == []
    assert [url for url in asked if not url.startswith("file:")] == []
    assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    page.close()


@pytest.mark.engines
def test_links_lead_to_files_as_no_server_makes_a_page_of_a_folder(site):
    """A page opened from disk is a file, and so is what its logo leads to; only a server gives 404.html."""
    for page in set(site.rglob("*.html")) - {site / "404.html"}:
        links = re.findall(r'<a\b[^>]*?\bhref="([^"#?]*)', page.read_text())
        for link in (html.unescape(link) for link in links if link and not re.match(r"\w+:", link)):
            assert (page.parent / link).is_file(), f"{page}: {link}"


@pytest.mark.engines
def test_a_link_to_a_folder_of_the_repository_leads_to_its_files(site):
    folder = site / "source" / "deploy" / "schedule"
    assert 'href="../source/deploy/schedule/index.html"' in (site / "how-to" / "scheduling.html").read_text()
    assert 'href="crontab"' in (folder / "index.html").read_text()
    assert (folder / "crontab").is_file()


@pytest.fixture
def write_page(monkeypatch, tmp_path):
    """Write a page of a checkout that has a few others and no modules."""
    for name in [*OUTSIDE, "docs/how-to/running.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# Page\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "PACKAGES", {})
    return (tmp_path / "docs" / "how-to" / "new.md").write_text


def test_links_lead_from_page_to_page(write_page, tmp_path):
    (tmp_path / "deploy" / "schedule").mkdir(parents=True)
    (tmp_path / "deploy" / "schedule" / "crontab").write_text("# Never\n")
    write_page("# New\n\n[page](running.md#page), [elsewhere](https://example.org/), [files](../../deploy/schedule)\n")
    assert main([str(tmp_path / "site")]) == 0
    text = (tmp_path / "site" / "how-to" / "new.html").read_text()
    assert '<a href="running.html#page">page</a>' in text
    assert '<a href="https://example.org/">elsewhere</a>' in text
    assert '<a href="../source/deploy/schedule/index.html">files</a>' in text
    assert 'href="crontab"' in (tmp_path / "site/source/deploy/schedule/index.html").read_text()


def test_a_link_to_nothing_fails_the_build(write_page, tmp_path, capsys):
    write_page("# New\n\n[gone](gone.md) and [nowhere](running.md#nowhere)\n")
    assert main([str(tmp_path / "site")]) == 2
    said = capsys.readouterr().err
    assert re.findall("^Warning: (.*)", said, re.MULTILINE) == ["page does not exist", "anchor does not exist"]
    assert "gone.md" in said
    assert "nowhere" in said
    assert not (tmp_path / "site").exists()


def render_links(project):
    """Render a page with links to files that are there and to others."""
    site = project / "html"
    site.mkdir()
    (site / "a.html").write_text(
        '<a href="b%20c.html#x">1</a> <a href="https://example.org/">2</a> <a href="#x">3</a> <a href="">4</a>'
        '<a class="x" href="gone.html?q">5</a> <img alt="" src="gone.png"> <script src="gone.js"></script>'
    )
    (site / "b c.html").write_text('<link rel="stylesheet" href="gone.css">')
    (site / "404.html").write_text('<a href="/nothing.html">1</a>')


def test_links_and_pictures_of_missing_files_fail_the_build(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "write_pages", lambda folder: folder.mkdir() or ["index.md"])
    monkeypatch.setattr(building, "_render", render_links)
    with pytest.raises(building.SiteError) as caught:
        building.build_site(tmp_path / "site")
    missing = ["a.html: gone.html", "a.html: gone.js", "a.html: gone.png", "b c.html: gone.css"]
    assert str(caught.value).splitlines()[1:] == missing
    assert not (tmp_path / "site").exists()


def test_a_page_in_no_section_fails_the_build(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "write_pages", lambda folder: ["index.md", "how-to/running.md", "new.md"])
    with pytest.raises(building.SiteError, match=r"no section of the site.*: new\.md$"):
        building.build_site(tmp_path / "site")


@pytest.mark.parametrize(
    ("printed", "status", "fails"),
    [("Build finished", 0, False), ("griffe: a.py:1: No type", 0, True), ("5 issues found", 1, True)],
)
def test_a_warning_of_a_docstring_fails_the_build(monkeypatch, tmp_path, printed, status, fails):
    done = subprocess.CompletedProcess([], status, f"Build started\n\x1b[33m{printed}\x1b[0m\n")
    monkeypatch.setattr(building.subprocess, "run", lambda *arguments, **options: done)
    with pytest.raises(building.SiteError, match=printed) if fails else contextlib.nullcontext():
        building._render(tmp_path)


@pytest.mark.parametrize(
    ("place", "link", "target"),
    [
        ("README.md", "docs/how-to/running.md", "how-to/running.md"),
        ("README.md", "configs/vocab/", "reference/vocabulary.md"),
        ("docs/how-to/running.md", "engines.md", "how-to/engines.md"),
        ("docs/how-to/running.md", "../images/a.png", "images/a.png"),
        ("docs/how-to/running.md", "../../configs/run.example.toml", "source/configs/run.example.toml"),
        ("configs/vocab/README.md", "../../docs/how-to/running.md", "how-to/running.md"),
        ("docs/how-to/running.md", "https://example.org/docs/a.md", None),
    ],
)
def test_links_lead_where_the_file_is_in_the_site(place, link, target):
    assert site_place(place, link) == target


def test_pages_know_their_place_in_the_repository():
    assert repository_place("reference/vocabulary.md") == "configs/vocab/README.md"
    assert repository_place("how-to/running.md") == "docs/how-to/running.md"


def test_a_page_is_in_the_section_of_its_folder_and_those_to_be_read_first_come_first():
    pages = ["how-to/filters.md", "how-to/a.md", "how-to/running.md", "index.md", "new.md", "api/cppmill_core.md"]
    assert navigation(pages) == [
        "index.md",
        {"How-to guides": ["how-to/running.md", "how-to/a.md", "how-to/filters.md"]},
        {"API": [{"Training code": [{"cppmill_core": "api/cppmill_core.md"}]}]},
    ]


def test_the_api_has_every_public_module():
    assert modules("native/py/python/cppmill_core")[:1] == ["cppmill_core"]
    assert {"schemas", "schemas.tables", "schemas.units"} <= set(modules("schemas"))
