"""The tests of the example: that it drops the right documents, and that runs can rely on it."""

from mostly_comments import FILTER

from cppmill import check_filter


def test_comments_are_dropped() -> None:
    """Comments count, and text in strings does not."""
    documents = [b"// a comment\n", b'int a;  // a\nchar s[] = "// no comment, but a string";\n']
    assert check_filter(FILTER, {"most": 0.5}, documents=documents) == ["0.92 of it are comments", None]


def test_the_filter_has_the_properties_that_runs_rely_on() -> None:
    """It says the same in any batch and order."""
    check_filter(FILTER)
