"""The exceptions of cppmill and the exit codes of its commands.

Every error says what was wrong, the value, where, and what to do. Commands turn them into exit codes; nothing else
catches them.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    FAILED_CHECK = 1
    USAGE = 2
    BAD_INPUT = 3
    NOTHING_TO_DO = 10
    BLOCKED = 11
    DRIFTED = 12
    UNEXPECTED = 70
    """An error that cppmill did not foresee; the number is that of EX_SOFTWARE in sysexits.h."""

    INTERRUPTED = 130


class CppmillError(Exception):
    """Base class of the errors that a user can do something about."""

    exit_code = ExitCode.FAILED_CHECK

    def __str__(self) -> str:
        """Return the message without the passwords of URLs, as programs log it."""
        from schemas.passwords import redacted  # which imports this module

        return redacted(super().__str__())


class ConfigError(CppmillError):
    """A run configuration that cannot be used: an unknown key, a wrong type, an impossible value."""

    exit_code = ExitCode.USAGE


class BadInputError(CppmillError):
    """More of the input is unusable than the configuration allows."""

    exit_code = ExitCode.BAD_INPUT


class NothingKeptError(BadInputError):
    """Sources of which no document is kept."""


class IntegrityError(CppmillError):
    """A file, a digest, a count or a vocabulary size that differs from what was recorded."""


class VocabularyConfigError(CppmillError):
    """A vocabulary that breaks its own rules: a moved id, a duplicate, a token that cannot be reached."""

    exit_code = ExitCode.USAGE


class LockedError(CppmillError):
    """Another run is writing to the same output."""


class BlockedError(LockedError):
    """A scheduled command found another one at work; the next scheduled one will do the work."""

    exit_code = ExitCode.BLOCKED


class PluginError(CppmillError):
    """A filter or reader that fails: it raises, does not return what it should, or cannot be imported."""


class EngineError(CppmillError):
    """An engine or service that refuses a job, or ends it, for a reason of its own."""


class ResourceError(CppmillError):
    """Something that the machine refuses: space, a size, descriptors, memory."""


class StoreError(CppmillError):
    """An object store that fails: refuses, does not answer, or answers with errors beyond all retries."""
