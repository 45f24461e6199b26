"""The metadata of the Dataflow template, made from the options of `cppmill run`: one parameter each.

python -m pipelines.cli.template_metadata > deploy/dataflow/metadata.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from configs.tables import FLAGS
from pipelines.cli.template import BEAM_OPTIONS, SOURCES, run_options
from schemas.declarations import ARGUMENTS

_HELP = {
    "engine": "Where the stages run: dataflow, as jobs of their own; local, on the worker of the template's job.  "
    "[default: dataflow]",
    "config": "TOML file with the tables [run], [ingest], [scan], [build], [tokenize]; the parameters win over it.",
}
"""What differs from the command line."""

_BEAM_HELP = (
    "Options for the jobs of the run, as after -- on the command line: --max_num_workers=50 "
    "--worker_machine_type=n2-standard-4. Project, region, locations, account, subnetwork and image are those of the "
    "template's job."
)
_URL, _NUMBER, _TRUTH = "^[a-z0-9]+://.+$", "^[0-9]+$", "^(true|false)$"


def metadata() -> dict[str, Any]:
    """Return the metadata, as `gcloud dataflow flex-template build --metadata-file` reads it."""
    return {
        "name": "cppmill",
        "description": "Makes a tokenizer, a tokenized dataset and a receipt from C++ sources.",
        "parameters": list(_parameters()),
    }


def _parameters() -> Iterator[dict[str, Any]]:
    sources = f"{FLAGS[ARGUMENTS].help} As gs:// URLs, separated by semicolons."
    yield _parameter(SOURCES, sources)
    for name, option in run_options().items():
        yield _parameter(name, _help(name, option), regex=_regex(name, option), is_optional=name != "out")
    yield _parameter(BEAM_OPTIONS, _BEAM_HELP)


def _parameter(name: str, text: str, *, regex: str | None = None, is_optional: bool = True) -> dict[str, Any]:
    label = name.replace("_", " ").capitalize()
    optional = {"isOptional": True} if is_optional else {}
    return {"name": name, "label": label, "helpText": text, **optional, **({"regexes": [regex]} if regex else {})}


def _help(name: str, option: Any) -> str:  # noqa: ANN401 - typer's private class
    text = _HELP.get(name, option.help)
    flag = FLAGS.get(option.opts[0])
    if name == "config" or (flag and flag.option.places):
        text += " A gs:// URL."
    return f"{text} Several are separated by semicolons." if option.multiple else text


def _regex(name: str, option: Any) -> str | None:  # noqa: ANN401
    flag = FLAGS.get(option.opts[0])
    if option.is_flag:
        return _TRUTH
    if name == "out":
        return _URL
    return _NUMBER if flag is not None and flag.type is int else None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(metadata(), indent=2, ensure_ascii=False) + "\n")
