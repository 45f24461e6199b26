"""The example package of `docs/how-to/plugin-package` in a folder, as an installer would leave it."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "docs" / "how-to" / "plugin-package"


def install_example(site: Path) -> None:
    """Copy the package to a folder that is not there, and write its metadata, by which its entry points are found."""
    shutil.copytree(PACKAGE, site)
    project = tomllib.loads((site / "pyproject.toml").read_text())["project"]
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    groups = project["entry-points"].items()
    lines = [line for group, points in groups for line in (f"[{group}]", *map(" = ".join, points.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
