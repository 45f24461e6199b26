"""The metadata of the Dataflow template, made from the options of its commands: one parameter each.

python -m pipelines.cli.template_metadata > deploy/dataflow/metadata.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from configs.flags import Flag
from configs.tables import DRIFT_FLAGS, FLAGS, STORE_FLAGS
from pipelines.cli.template import BEAM_OPTIONS, COMMAND, COMMANDS, SOURCES, all_options, command_options
from schemas.declarations import ARGUMENTS
from transforms.storage.aws_keys import SECRET_OPTION

_HELP = {
    "engine": "Where the stages run: dataflow, as separate jobs; local, on the worker of the template's job.  "
    "[default: dataflow]",
    "config": "TOML file with the tables [run], [ingest], [scan], [build], [tokenize]; parameters override it.",
}
"""What differs from the command line."""

_BEAM_HELP = (
    "Options for the jobs of the run, as after -- on the command line: --max_num_workers=50 "
    "--worker_machine_type=n2-standard-4. Project, region, locations, account, subnetwork and image are those of the "
    "template's job."
)
_COMMAND_HELP = (
    "What to do: run, one run into out; retokenize, a new version in store if the sources have changed.  [default: run]"
)
_SECRET_HELP = (
    "Secret of Secret Manager with the credentials of s3://, as projects/PROJECT/secrets/NAME: a JSON object of "
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and other variables of AWS. Each worker reads it."
)
_SECRET = "^projects/[^/]+/secrets/[^/]+(/versions/[^/]+)?$"
_URL, _NUMBER, _TRUTH = "^[a-z0-9]+://.+$", "^[0-9]+$", "^(true|false)$"


def metadata() -> dict[str, Any]:
    """Return the metadata, as `gcloud dataflow flex-template build --metadata-file` reads it."""
    return {
        "name": "cppmill",
        "description": "Makes a tokenizer, a tokenized dataset and a receipt from C++ sources.",
        "parameters": list(_parameters()),
    }


def _parameters() -> Iterator[dict[str, Any]]:
    yield _parameter(COMMAND, _COMMAND_HELP, regex=f"^({'|'.join(COMMANDS)})$")
    yield _parameter(SOURCES, f"{FLAGS[ARGUMENTS].help} As gs:// URLs, separated by semicolons.")
    for name, option in all_options().items():
        yield _parameter(name, f"{_help(name, option)}{_only(name)}", regex=_regex(name, option))
    yield _parameter(BEAM_OPTIONS, _BEAM_HELP)
    yield _parameter(SECRET_OPTION, _SECRET_HELP, regex=_SECRET)


def _parameter(name: str, text: str, *, regex: str | None = None) -> dict[str, Any]:
    label = name.replace("_", " ").capitalize()
    regexes = {"regexes": [regex]} if regex else {}
    return {"name": name, "label": label, "helpText": text, "isOptional": True, **regexes}


def _only(name: str) -> str:
    """Return which command alone has a parameter, as a sentence."""
    having = [command for command in COMMANDS if name in command_options(command)]
    return "" if len(having) == len(COMMANDS) else f" Only with command={having[0]}."


def _help(name: str, option: Any) -> str:  # noqa: ANN401 - typer's private class
    text = _HELP.get(name, option.help)
    flag = _flag(option)
    if name == "config" or (flag and (flag.option.places or flag.key == "out")):
        text += " A gs:// URL."
    return f"{text} Several are separated by semicolons." if option.multiple else text


def _regex(name: str, option: Any) -> str | None:  # noqa: ANN401
    flag = _flag(option)
    if option.is_flag:
        return _TRUTH
    if flag is None:
        return _NUMBER if option.metavar == "N" else None
    return _URL if flag.key == "out" else _NUMBER if flag.type is int else None


def _flag(option: Any) -> Flag | None:  # noqa: ANN401
    return (FLAGS | STORE_FLAGS | DRIFT_FLAGS).get(option.opts[0])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(metadata(), indent=2, ensure_ascii=False) + "\n")
