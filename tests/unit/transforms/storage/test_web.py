"""Whether what a web server sends fits what it listed, and what a page lists."""

import pytest

from transforms.storage.web import _is_of, _links_below

DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
OTHER_DATE = "Tue, 02 Jan 2024 00:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "version", "expected"),
    [
        ({"ETag": '"1"', "Last-Modified": OTHER_DATE}, '"1"', True),
        ({"ETag": 'W/"1"'}, '"1"', True),
        ({"ETag": '"1"'}, 'W/"1"', True),
        ({"ETag": '"2"', "Last-Modified": DATE}, '"1"', False),
        ({"ETag": '"2"', "Last-Modified": DATE}, DATE, True),
        ({"ETag": '"2"', "Last-Modified": OTHER_DATE}, DATE, False),
        ({"Last-Modified": OTHER_DATE}, DATE, False),
        ({"Last-Modified": OTHER_DATE}, '"1"', True),
        ({"ETag": '"1-gzip"', "Content-Encoding": "gzip", "Content-Length": "3"}, '"1"', True),
        ({"Content-Length": "9"}, DATE, False),
        ({"Content-Length": "8"}, DATE, True),
        ({"Content-Length": "2", "Content-Range": "bytes 1-2/8"}, DATE, True),
        ({"Content-Length": "2", "Content-Range": "bytes 1-2/9"}, DATE, False),
        ({"Content-Length": "2", "Content-Range": "bytes 1-2/*"}, DATE, True),
        ({}, '"1"', True),
    ],
)
def test_a_file_is_sent_as_it_was_listed(headers, version, expected):
    assert _is_of(headers, 8, version) == expected


def test_a_file_of_unknown_size_may_have_any():
    assert _is_of({"Content-Length": "9"}, 0, DATE)


@pytest.mark.parametrize("junk", ["<a ", "<![", "<!x", "<![x[", '<a href="', "</a", "<!--", ""])
def test_a_page_that_is_broken_off_has_the_links_before(junk: str) -> None:
    page = f'<!DOCTYPE html><![if x]><a href="b/">b</a><![x>{junk * 20_000}'
    assert "http://host/d/b/" in _links_below(page, "http://host/d")
