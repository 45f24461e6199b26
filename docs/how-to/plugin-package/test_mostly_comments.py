"""The tests of the example: that it drops the right documents, and that runs can rely on it."""

from mostly_comments import FILTER

from cppmill import check_filter
from cppmill.testing import FilterProperty

pytest_plugins = ["cppmill.testing"]

DOCUMENTS = [b"// a comment\n", b'int a;  // a\nchar s[] = "// no comment, but a string";\n']


def test_comments_are_dropped() -> None:
    """Comments count, and text in strings does not."""
    assert check_filter(FILTER, {"most": 0.5}, documents=DOCUMENTS) == ["0.92 of it are comments", None]


def test_the_filter_has_each_property_that_runs_rely_on(filter_property: FilterProperty) -> None:
    """It says the same of a document in any batch and order: a test for each property."""
    filter_property(FILTER, {"most": 0.5}, documents=DOCUMENTS)
