"""The page of tokens in a browser: every part of every letter is drawn on the box of its token."""

import io

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.engines

LETTERS = b"int a_b = package_dir; // gjpqy_() {}[]|,;Q\n"


@pytest.fixture(scope="module")
def address(run, cppmill, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "letters.cpp").write_bytes(LETTERS)
    cppmill("show", "--tokenizer", run.out / "tokenizer", folder / "letters.cpp", "--html", folder / "page.html")
    return (folder / "page.html").as_uri()


@pytest.mark.parametrize("size", [11.2, 14.4, 16, 20])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_are_on_their_boxes(browser, address, scheme, size):
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1024, "height": 700})
    page.goto(address)
    page.add_style_tag(content=f"pre {{ font-size: {size}px !important }}")
    with_letters = screenshot(page)
    page.add_style_tag(content="pre i { color: transparent !important }")
    boxes = screenshot(page)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    drawn = np.any(with_letters != boxes, axis=2)
    assert drawn.sum() > 500
    bare = np.all(boxes == [int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(",")], axis=2)
    assert (drawn & bare).sum() == 0


def screenshot(page):
    """The pixels of the line, but for the mark that ends it, which is of another font."""
    line, mark = page.locator("pre").bounding_box(), page.locator("pre i").last.bounding_box()
    picture = page.screenshot(clip={**line, "width": mark["x"] - line["x"]})
    return np.array(Image.open(io.BytesIO(picture)).convert("RGB"))
