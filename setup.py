"""Build the source-only package: the import packages of the checkout with their data files.

Beam stages this package to workers (`--setup_file`). The native core is a wheel of its own, made from `native/`.
Metadata and version are in `pyproject.toml`.
"""

from setuptools import find_packages, setup

PACKAGES = ("cppmill", "pipelines", "transforms", "schemas", "tokenizer_build", "configs")

setup(
    package_dir={"": "."},
    packages=find_packages(include=[pattern for name in PACKAGES for pattern in (name, f"{name}.*")]),
    package_data={name: ["py.typed", "**/*.json", "**/*.lock", "**/*.md", "**/*.toml", "**/*.j2"] for name in PACKAGES},
    include_package_data=False,
)
