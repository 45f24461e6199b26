"""The report in a browser: it loads without a word in the console, asks for nothing, and fits phones and desks."""

import re

import pytest

pytestmark = pytest.mark.engines

SCREENS = [(scheme, width) for scheme in ("light", "dark") for width in (400, 641, 768, 1024, 1400)]


@pytest.fixture(scope="module")
def address(run, cppmill, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "page.html"
    cppmill("report", run.out, "--out", page)
    return page.as_uri()


@pytest.fixture
def open_page(browser, address):
    """Open the page on a screen; what the console said and what was asked for are in `said` and `asked`."""
    contexts = []

    def open_it(scheme="light", width=1400, **options):
        viewport = {"width": width, "height": 900}
        contexts.append(browser.new_context(color_scheme=scheme, viewport=viewport, **options))
        page = contexts[-1].new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        return page

    yield open_it
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_it_loads_in_silence_alone_and_fits(open_page, address, scheme, width):
    page = open_page(scheme, width)
    page.mouse.wheel(0, 20_000)
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("data:")] == [address]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")


@pytest.mark.parametrize("width", [400, 641, 767, 768, 900, 1024, 1119, 1120, 1400])
def test_no_table_is_cut_and_no_word_of_a_rule_is_broken(open_page, width):
    page = open_page(width=width)
    cut = page.evaluate(
        """[...document.querySelectorAll(".scroll, .card")].filter((e) => e.scrollWidth > e.clientWidth + 1)
           .map((e) => [e.innerText.slice(0, 40), e.scrollWidth, e.clientWidth])"""
    )
    assert cut == []
    narrow = page.evaluate(
        """[...document.querySelectorAll("td.rule")].map((e) => e.getBoundingClientRect().width)
           .filter((width) => width < 90)"""
    )
    assert narrow == []


def test_reasons_in_words_are_shown_on_phones(open_page):
    reasons = open_page(width=400).locator("#decisions td small")
    assert reasons.count() > 2
    assert all(reasons.nth(place).is_visible() for place in range(reasons.count()))


def test_an_id_is_found_by_its_number_with_and_without_commas(open_page):
    page = open_page()
    browser = page.locator("[data-rows=vocabulary]")
    for text in ("1500", "1,500"):
        browser.locator("input").fill(text)
        assert rows(page, "vocabulary")[0].split("\t")[:2] == ["'std'", "1,500"]


def test_bytes_per_token_have_equally_many_digits_in_each_row(open_page):
    cells = [row.split("\t")[-1] for row in rows(open_page(), "projects")]
    assert all(re.fullmatch(r"\d+\.\d{3}", cell) for cell in cells)


def test_the_map_is_searched(open_page):
    page = open_page()
    search, told = page.locator(".map input"), page.locator(".map .told")
    before = page.locator(".map .ids").screenshot()
    search.fill("LIBRARY std")
    number = int(re.match(r"(\d+) of [\d,]+ ids", told.inner_text())[1])
    seen = []
    for _ in range(number + 1):
        seen.append(page.locator("#pointed").inner_text())
        search.press("Enter")
    assert number > 1
    assert len(set(seen)) == number
    assert seen[0] == seen[-1]
    assert all("std" in text and "library" in text for text in seen)
    assert page.locator(".map .ids").screenshot() != before
    search.fill("1,500")
    assert page.locator("#pointed").inner_text().startswith("id 1500 · 'std' · ")
    search.fill("no such token")
    assert told.inner_text().startswith("0 of ")
    search.fill("")
    assert told.inner_text() == ""
    assert page.said == []


def test_the_map_answers_a_touch_and_moves_on_from_there(open_page):
    page = open_page(width=400, has_touch=True)
    page.locator(".map img").tap(position={"x": 30, "y": 30})
    first = int(re.match(r"id (\d+)", page.locator("#pointed").inner_text())[1])
    page.get_by_role("button", name="the next id").click()
    assert page.locator("#pointed").inner_text().startswith(f"id {first + 1} ")
    page.get_by_role("button", name="the id before").click()
    assert page.locator("#pointed").inner_text().startswith(f"id {first} ")


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_text_can_be_read(open_page, scheme, width):
    """Letters of plots are at least 10 pixels high, and text differs from its ground as WCAG asks (4.5 to 1)."""
    page = open_page(scheme, width)
    sizes = page.evaluate(
        """[...document.querySelectorAll("svg.plot")].map((svg) =>
           12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert len(sizes) > 8
    assert min(sizes) >= 10
    colours = page.evaluate(
        """["body", "p.quiet", "svg.plot text"].map((name) => getComputedStyle(document.querySelector(name)))
           .map((style) => style.fill === "rgb(0, 0, 0)" ? style.color : style.fill)"""
    )
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert min(contrast(colour, ground) for colour in colours) >= 4.5


def contrast(one, other):
    """The ratio of the luminances of two colours, as WCAG 2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_what_is_seen_equals_the_receipt(run, open_page):
    page = open_page()
    said = page.evaluate(
        "[...document.querySelectorAll('[data-receipt]')].map((e) => [e.dataset.receipt, e.innerText])"
    )
    receipt = run.receipt
    for path, text in said:
        value = receipt
        for name in path.split("."):
            value = value[name]
        assert text == (f"{value:,}" if isinstance(value, int) else value)
    assert len(said) > 15


def rows(page, name):
    return page.locator(f"[data-rows={name}] tbody tr").all_inner_texts()


def test_decisions_are_searched_filtered_and_sorted(open_page):
    page = open_page()
    browser = page.locator("[data-rows=decisions]")
    everything = browser.locator(".told").inner_text()
    browser.locator("input").fill("cuda KERNEL")
    found = rows(page, "decisions")
    assert found
    assert all("cuda" in row.lower() and "kernel" in row.lower() for row in found)
    assert browser.locator(".told").inner_text() != everything
    browser.locator("input").fill("")
    browser.locator("select").select_option("generic")
    assert all("generic" in row for row in rows(page, "decisions"))
    browser.locator("select").select_option("")
    assert browser.locator(".told").inner_text() == everything
    browser.get_by_role("button", name="token").click()
    tokens = [row.split("\t")[0] for row in rows(page, "decisions")]
    assert tokens == sorted(tokens)
    browser.get_by_role("button", name="token").click()
    assert browser.locator("th").first.get_attribute("aria-sort") == "descending"
    assert page.said == []


def test_more_rows_come_when_they_are_asked_for(open_page):
    page = open_page()
    few = len(rows(page, "vocabulary"))
    page.locator("[data-rows=vocabulary] .more").click()
    assert len(rows(page, "vocabulary")) > few


def test_unused_ids_can_be_listed(open_page):
    page = open_page()
    page.locator("[data-rows=vocabulary] select").select_option(label="unused")
    assert {row.rsplit("\t", 1)[1] for row in rows(page, "vocabulary")} == {"0"}


def test_the_map_shows_the_id_under_the_pointer(open_page):
    page = open_page()
    map_of_ids = page.locator(".map img")
    map_of_ids.scroll_into_view_if_needed()
    box = map_of_ids.bounding_box()
    row, column = divmod(1500, 256)
    rows = map_of_ids.evaluate("(map) => map.naturalHeight")
    page.mouse.move(box["x"] + (column + 0.5) * box["width"] / 256, box["y"] + (row + 0.5) * box["height"] / rows)
    assert page.locator("#pointed").inner_text().startswith("id 1500 · 'std' · library, pinned · ")
