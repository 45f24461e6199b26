"""The start of the programs: closed streams, limits, and packages of the user's that would hide those of cppmill."""

from __future__ import annotations

import atexit
import gc
import os
import resource
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

PACKAGES = ("configs", "pipelines", "schemas", "tokenizer_build", "transforms")

_USAGE_ERROR = 2
_LEAST_STACK_BYTES = 1 << 20
_OBJECTS_BEFORE_COLLECTION = 50_000
"""Python looks for unused cycles after 700 new objects: hundreds of times while modules are imported, for nothing."""
_PURGE_DELAY = ("MIMALLOC_PURGE_DELAY", "60000")
"""Arrow returns memory to the system after a second without use, which is soon cleared and taken again: a tenth of the
processor time of a run where others use the machine too. A run gives it back after each stage instead."""

_UTF8, _MODE = "utf-8", "PYTHONUTF8"
_FILE_NAMES = sys.getfilesystemencoding()
_OTHER_NAMES = f"Python reads names of files as {_FILE_NAMES}, not as UTF-8; set {_MODE}=1 or LC_ALL=C.UTF-8"

_LONE = ("OPENBLAS_NUM_THREADS", "1")
"""The algebra in numpy starts a thread per processor when it is imported, which nothing here uses. Where the system
starts no more, it prints lines of its own and sends this process the signal of Ctrl-C."""


def run_commands() -> None:
    """Run the command line."""
    _open_closed_streams()
    _use_utf8()
    check_packages()
    os.environ.setdefault(*_LONE)
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    atexit.register(gc.freeze)  # or Python looks for cycles in all that is left before it ends: 0.1 s
    os.environ.setdefault(*_PURGE_DELAY)  # read when Arrow is loaded
    from pipelines.cli.app import main

    try:
        main()
    except SystemExit as end:
        if _is_program():
            _leave(end.code)
        raise


def _is_program() -> bool:
    """Return whether this process was started for the command line, and not for a program that calls it."""
    started = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    return started.name == "cppmill" or started == Path(__file__).with_name("__main__.py")


def _leave(code: str | int | None) -> NoReturn:
    """End this process as Python does, but leave the interpreter as it is.

    A thread of Arrow may just be letting go of memory that is Python's, for which it takes the interpreter's lock. If
    that is being taken down, Python before 3.14 ends the thread, and this aborts the process.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # as processes of `multiprocessing` end
    atexit._run_exitfuncs()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def run_worker() -> None:
    """Run a worker process."""
    _open_closed_streams()
    check_packages()
    os.environ.setdefault(*_LONE)
    from pipelines.engines.worker import main

    main()


def _open_closed_streams() -> None:
    """Open standard streams that whoever started this process closed; a file of OUT would get what is printed there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - takes the closed one's number
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _use_utf8() -> None:
    """Begin again in Python's UTF-8 mode if the locale has another encoding, so that names of files are what they are.

    Raises:
        SystemExit: With exit code 2, if the mode was refused.
    """
    if _FILE_NAMES == _UTF8:
        return
    if os.environ.get(_MODE):
        sys.stderr.write(f"error: {_OTHER_NAMES}\n")
        raise SystemExit(_USAGE_ERROR)
    os.environ[_MODE] = "1"
    os.execv(sys.executable, sys.orig_argv)


def require_packages() -> None:
    """Check, before a program imports cppmill's packages, that Python would not import others with the same names.

    Raises:
        ImportError: If another file would be imported in place of one, or names of files are not read as UTF-8.
    """
    if _FILE_NAMES != _UTF8:
        raise ImportError(_OTHER_NAMES)
    if hidden := _find_hidden():
        raise ImportError(hidden)


def check_packages() -> None:
    """End the program with one line if another file would be imported in place of a package of cppmill.

    It also ends if the stack is so small that Python or a library would crash silently.

    Raises:
        SystemExit: With exit code 2.
    """
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack != resource.RLIM_INFINITY and stack < _LEAST_STACK_BYTES:
        needed = f"at least {_LEAST_STACK_BYTES >> 10:,} are needed"
        sys.stderr.write(f"error: the stack is limited to {stack >> 10:,} kB (ulimit -s); {needed}\n")
        raise SystemExit(_USAGE_ERROR)
    if hidden := _find_hidden():
        sys.stderr.write(f"error: {hidden}\n")
        raise SystemExit(_USAGE_ERROR)


def _find_hidden() -> str:
    """Return which package of cppmill would not be imported, and what to do about it; empty if all would be."""
    for name in PACKAGES:
        ours = Path(__file__).resolve().parents[1] / name / "__init__.py"
        spec = find_spec(name)
        found = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if found != ours:
            return _describe(name, found, ours)
    return ""


def _describe(name: str, found: Path | None, ours: Path) -> str:
    """Return which file is in the way, and what to do about it."""
    if found is None:
        return f"{ours}: the package {name} of cppmill cannot be imported; install cppmill again"
    folder = (found.parent if found.name == "__init__.py" else found).parent
    return (
        f"{found}: Python imports this as {name!r} in place of the package of cppmill in {ours.parent}; rename it, "
        f"start from a folder other than {folder}, or take that folder out of PYTHONPATH"
    )
