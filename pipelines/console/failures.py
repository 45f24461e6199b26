"""Errors as users and programs see them: the message, what kind it is, where the problem is, and the exit code.

An error that the user can fix is one clear message and an exit code. Anything else is unexpected: it has its traceback
and an exit code of its own. A message of cppmill begins with what it is about, an option or a place, so both are read
from there.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas import errors
from schemas.errors import ConfigError, CppmillError, ExitCode, ResourceError
from schemas.printing import one_line
from schemas.resources import explain_refusal, explain_unreachable, find_refusal

_RAISED = re.compile(r"^(schemas\.errors|cppmill_core\._native|cppmill_core)\.(\w+): (.*?)(?:\n\s*\n|\Z)", re.M | re.S)

_OPTION = re.compile(
    r"(?P<option>--[a-z][\w-]*(?: [a-z_]+\.\w+(?==))?|[A-Z]{3,}|[a-z_]+\.[a-z_]+(?= = ))(?:[ =](?P<value>.*))?"
)
"""An option as messages name it, with its value: `--threads 0`, `--set scan.x=1`, `SOURCE a/b`, `ingest.sample = 2`."""


_GONE_IN_TRACEBACK = re.compile(r"^FileNotFoundError: \[Errno \d+\] [^'\n]*: '([^'\n]+)'", re.M)
"""A file that was gone, in the text of an error of a Beam worker."""

_LONGEST_LINE = 4_000
"""How many characters of a line are printed; a message may hold what stands in a file, such as a name of a megabyte."""

_GONE = "it is not there any more; run again, and if a run is writing there, once that has ended"
"""What is said of a file that was there when a command began."""


class Failure(NamedTuple):
    """Why a command ends with an error.

    Attributes:
        kind: The class of the error, as `ConfigError`.
        message: What is wrong, a line per problem.
        exit_code: How the command ends.
        trace: The traceback of an unexpected error; empty for others.
        option: The option or argument that it is about, if the message does not begin with it.
    """

    kind: str
    message: str
    exit_code: ExitCode
    trace: str = ""
    option: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values: `docs/reference/command-line.md` describes them."""
        given = {"option": self.option} if self.option else {}
        found = {
            "event": "error",
            "kind": self.kind,
            "exit_code": int(self.exit_code),
            "message": self.message,
            "problems": [{**describe_problem(line), **given} for line in self.message.split("\n")],
        }
        return {**found, "traceback": self.trace} if self.trace else found


def describe_problem(line: str) -> Mapping[str, str | None]:
    """Return a line of a message with the option and the place that it is about; None for what it does not name.

    Example:
        >>> describe_problem("--threads 0: not allowed")["option"]
        '--threads'
        >>> describe_problem("run.toml: ingest.sample = 2: not allowed")
        {'message': 'run.toml: ingest.sample = 2: not allowed', 'option': 'ingest.sample', 'place': 'run.toml'}
        >>> describe_problem("out/tokens/part-0.parquet: missing")["place"]
        'out/tokens/part-0.parquet'
    """
    subject, _, rest = line.partition(": ")
    file = subject if subject.endswith(".toml") and rest else None
    named = _OPTION.fullmatch(rest.partition(": ")[0] if file else subject)
    if named is not None:
        value = (named["value"] or "").strip("= ")
        return {"message": line, "option": named["option"], "place": file or (value if _is_place(value) else None)}
    return {"message": line, "option": None, "place": subject if rest and _is_place(subject) else None}


def _is_place(text: str) -> bool:
    return "/" in text or ("." in text and " " not in text)


def print_failure(failure: Failure, *, as_json: bool = False) -> None:
    """Write an error to the error stream: a JSON object in a line, or its traceback, or a marked line per problem."""
    if as_json:
        text = json.dumps(failure.to_json()) + "\n"
    else:
        text = failure.trace or "".join(f"error: {_shorten(line)}\n" for line in failure.message.split("\n"))
    sys.stderr.write(text)
    sys.stderr.flush()


def _shorten(line: str) -> str:
    """Return a line without its middle if it is very long: its ends say what it is about, and what to do."""
    left_out = len(line) - _LONGEST_LINE
    side = _LONGEST_LINE // 2
    return line if left_out <= 0 else f"{line[:side]} … {left_out:,} characters … {line[-side:]}"


def find_failure(error: Exception) -> Failure:
    """Return what an error is for users."""
    known = find_user_error(error)
    if known is not None:
        return known
    name, trace = type(error).__name__, "".join(traceback.format_exception(error))
    return Failure(name, f"unexpected {name}: {error}", ExitCode.UNEXPECTED, trace)


def find_user_error(error: Exception) -> Failure | None:
    """Return what an error is that the user can fix, None for any other.

    An error of a Beam worker in another thread or process arrives as the text of its traceback. Its class is read from
    there, so a command ends in the same way on every engine.
    """
    name = type(error).__name__
    if isinstance(error, CppmillError):
        return Failure(name, strip_label(str(error)), error.exit_code)
    core = sys.modules.get("cppmill_core")
    if core is not None and isinstance(error, core.CoreError):
        return Failure(name, strip_label(str(error)), _core_exit_code(name))
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return _gone(error.filename)
    argument = _badly_encoded(error)
    if argument is not None:
        return Failure(ConfigError.__name__, f"{argument}: not UTF-8", ConfigError.exit_code)
    refusal = explain_refusal(error) or explain_unreachable(error)
    return _refused(refusal) if refusal else _find_in_traceback(str(error))


def _badly_encoded(error: Exception) -> str | None:
    """Return the argument of the command for which a text cannot be encoded, as a terminal shows it, if one is so."""
    if not isinstance(error, UnicodeEncodeError):
        return None
    wrong = error.object[error.start : error.end]
    return next((one_line(word) for word in sys.argv[1:] if wrong in word), None)


def is_reported(message: str) -> bool:
    """Return whether a log message repeats an error that the command reports anyway."""
    return _find_in_traceback(message) is not None


def _refused(message: str) -> Failure:
    return Failure(ResourceError.__name__, message, ResourceError.exit_code)


def _gone(name: str) -> Failure:
    return Failure(FileNotFoundError.__name__, f"{name}: {_GONE}", ExitCode.FAILED_CHECK)


def _core_exit_code(name: str) -> ExitCode:
    """Return the exit code of an error of the native core, caused by an argument or by a file."""
    return ExitCode.USAGE if name in ("InvalidInputError", "VocabularyError") else ExitCode.FAILED_CHECK


def _find_in_traceback(text: str) -> Failure | None:
    """Return the last error of ours at the end of a traceback."""
    found = list(_RAISED.finditer(text))
    if not found:
        refusal, gone = find_refusal(text), _GONE_IN_TRACEBACK.findall(text)
        if refusal is not None:
            return _refused(refusal)
        return _gone(gone[-1]) if gone else None
    module, name, message = found[-1].groups()
    kind = getattr(errors, name, CppmillError)
    code = kind.exit_code if module == "schemas.errors" else _core_exit_code(name)
    return Failure(name, strip_label(message), code)


def strip_label(message: str) -> str:
    """Return a message without the label of the step that Beam appends."""
    return re.sub(r"\s*\[while running '[^']*'\]", "", message).strip()
