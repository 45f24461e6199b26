import pytest
from pydantic import BaseModel

from configs.tables import TABLES, StoreTableOptions
from schemas.declarations import field_docstring


class Base(BaseModel):
    first: int = 1
    """What the base says.

    More of it.
    """

    second: int = 2
    third: int = 3
    """Of the base."""


class Derived(Base):
    third: int = 4
    """Of the derived one."""

    class Inner(BaseModel):
        third: int = 5
        """Of the inner one."""


def test_a_field_has_the_docstring_below_it_in_the_class_that_declares_it():
    assert field_docstring(Derived, "first") == "What the base says.\n\nMore of it."
    assert field_docstring(Derived, "second") == ""
    found = [field_docstring(model, "third") for model in (Base, Derived, Derived.Inner)]
    assert found == ["Of the base.", "Of the derived one.", "Of the inner one."]


def test_a_model_within_a_function_has_docstrings_too():
    class Local(BaseModel):
        key: int = 1
        """Local."""

    assert field_docstring(Local, "key") == "Local."


@pytest.mark.parametrize("model", [*TABLES.values(), StoreTableOptions])
def test_every_option_has_a_docstring(model):
    assert [key for key in model.model_fields if not field_docstring(model, key)] in ([], ["profile"])
