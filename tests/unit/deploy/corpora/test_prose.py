"""Pages of documentation as plain text."""

import gzip

from deploy.corpora.prose import SEPARATOR, page_text, write_pages

WORDS = "the quick brown fox jumps over the lazy dog " * 6


def test_a_page_is_its_text_with_a_line_for_each_block(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(
        f"<html><head><title>T</title></head><body><script>x()</script><nav>menu</nav><h1>A &amp; B</h1>"
        f"<p>{WORDS}<b>bold</b>\n next</p><p>last{SEPARATOR}</p></body></html>"
    )
    assert page_text(page) == f"A & B\n\n{WORDS}bold\nnext\n\nlast"


def test_what_is_no_page_or_has_little_text_is_left_out(tmp_path):
    contents = {"a.png": WORDS.encode(), "b.txt": b"short", "c.txt": b"\xff" * 300, "d.gz": b"\x1f\x8b broken"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert page_text(tmp_path / name) == ""


def test_each_page_is_written_once_in_the_order_of_paths(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "z.txt").write_text(f"z {WORDS}")
    (folder / "b.3").write_text(f"b {WORDS}")
    (folder / "a.1.gz").write_bytes(gzip.compress(f"a {WORDS}".encode()))
    (folder / "again.txt").write_text(f"z {WORDS}")
    write_pages(folder, tmp_path / "out.txt")
    pages = (tmp_path / "out.txt").read_text().split(SEPARATOR)
    assert [page[:1] for page in pages] == ["a", "z", "b", ""]
