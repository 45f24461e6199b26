"""Pages: templates beside this file, each rendered to one HTML file that needs no network."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render_page(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template takes
    """Return a page.

    Args:
        template: Name of the file.
        values: What the template shows; text is escaped.

    Raises:
        jinja2.TemplateError: If a value is missing.
    """
    environment = Environment(
        loader=PackageLoader("pipelines", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    return environment.get_template(template).render(values)
