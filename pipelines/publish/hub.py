"""The program of `cppmill push`: a finished run as a dataset repository of the Hugging Face Hub.

The repository gets the shards of documents and tokens, the tokenizer, `platform_vocab.json`, the receipt and its
signature, and what `cppmill provenance` writes. What is there with the same digest is not sent again, so a push goes on
after a kill. New shards come first, in commits of some files each; their names contain keys, so nothing that is there
changes. The last commit has everything else and deletes old shards, so receipt and card are those of complete data. It
is made only on top of the commit that was looked at before it: another push at the same time has it begin again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile
from huggingface_hub.constants import DEFAULT_REVISION, ENDPOINT
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils.sha import git_hash
from huggingface_hub.utils.tqdm import disable_progress_bars

from pipelines.publish.provenance import write_provenance
from schemas.digests import sha256_file
from schemas.errors import ConfigError, CppmillError, IntegrityError, StoreError
from schemas.logs import module_logger
from transforms.records.checks.published import published_files
from transforms.records.croissant import Publication
from transforms.records.in_toto import BUILDER
from transforms.records.receipts import RECEIPT, SIGNATURE, read_receipt, unchanged_receipt
from transforms.storage.folder import OutputFolder
from transforms.storage.hub import is_of_hub
from transforms.storage.scratch import temporary_folder

logger = module_logger(__name__)

T = TypeVar("T")

_TOKEN = re.compile(r"hf_\w+")
"""A token, which messages about an invalid header contain."""

ATTEMPTS = 5
"""How often a push goes on by itself after the Hub failed."""

PAUSE_SECONDS = 2.0
"""How long it waits before the first of these; twice as long before each other one."""

COMMIT_FILES = 100
"""Most shards in a commit, as the Hub advises."""

_DATA = ("documents/", "tokens/")
_SERVER_ERROR = 500
_MOVED = 412
"""The status of a commit whose parent is no longer the last commit of the branch."""


@dataclass(frozen=True, kw_only=True)
class Repository:
    """Where to push to.

    Attributes:
        name: ORG/NAME.
        revision: The branch; made if it does not exist.
        private: Whether a repository that does not exist is made private.
    """

    name: str
    revision: str = DEFAULT_REVISION
    private: bool = False


@dataclass(frozen=True, kw_only=True)
class File:
    """A file to be in the repository.

    Attributes:
        path: Its path there.
        sha256: Its digest.
        out: The folder that has it under the same path.
    """

    path: str
    sha256: str
    out: OutputFolder

    def read(self) -> bytes:
        """Return its bytes.

        Raises:
            FileNotFoundError: If it is gone.
            IntegrityError: If it has changed.
        """
        content = self.out.read_bytes(self.path)
        self.check(sha256(content).hexdigest())
        return content

    def check(self, found: str) -> None:
        """Check that a digest is its own.

        Raises:
            IntegrityError: If it has changed.
        """
        if found != self.sha256:
            raise IntegrityError(f"{self.out.where(self.path)}: its SHA-256 is {found}, not {self.sha256}")


def endpoint() -> str:
    """Return the Hub's URL: `HF_ENDPOINT` of the environment, else the public one."""
    return os.environ.get("HF_ENDPOINT", ENDPOINT).rstrip("/")


def push(run: str, repository: Repository, publication: Publication, verify: Callable[[], object]) -> Iterator[str]:
    """Push a run, and yield lines about it.

    Args:
        run: The run's folder, or its URL.
        repository: Where to.
        publication: What the card says besides the receipt.
        verify: Verifies the run; nothing is published if it raises.

    Raises:
        ConfigError: If the name is none, or the Hub refuses token or name.
        IntegrityError: If a file is not what the receipt says, or another run writes there meanwhile.
        StoreError: If the Hub fails after all attempts.
    """
    out = OutputFolder(run)
    with unchanged_receipt(out) as check_unchanged:
        verify()
        yield _push(out, repository, publication, check_unchanged)


def _push(
    out: OutputFolder, repository: Repository, publication: Publication, check_unchanged: Callable[[], None]
) -> str:
    receipt = read_receipt(out)
    disable_progress_bars()
    api = HfApi(endpoint=endpoint(), token=os.environ.get("HF_TOKEN") or False)
    with temporary_folder() as folder:
        described = Path(folder) / "card"
        list(write_provenance(out.root, described, publication, builder=BUILDER))
        files = [*run_files(out, receipt), *_card_files(described)]
        check_unchanged()
        _persist(lambda: _prepare(api, repository), repository)
        new = set[str]()
        _persist(lambda: _send(api, repository, files, new), repository)
    where = f"{endpoint()}/datasets/{repository.name}/tree/{repository.revision}"
    return f"{where}: {len(files):,} files, {len(new):,} of them new or changed, receipt {receipt['digest']}"


def run_files(out: OutputFolder, receipt: dict[str, Any]) -> Iterator[File]:
    """Yield the files of a run that are published: products, the platform vocabulary, the receipt and its signature."""
    yield from (File(path=name, sha256=sha256, out=out) for name, sha256 in published_files(receipt).items())
    yield from (File(path=name, sha256=out.hash(name), out=out) for name in (RECEIPT, SIGNATURE) if out.exists(name))


def _card_files(folder: Path) -> Iterator[File]:
    out = OutputFolder(folder)
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            yield File(path=path.name, sha256=sha256_file(path), out=out)


def _prepare(api: HfApi, repository: Repository) -> None:
    """Make the repository and the branch, if they are not there."""
    api.create_repo(repository.name, repo_type="dataset", private=repository.private or None, exist_ok=True)
    if repository.revision != DEFAULT_REVISION:
        api.create_branch(repository.name, branch=repository.revision, repo_type="dataset", exist_ok=True)


def _send(api: HfApi, repository: Repository, files: Sequence[File], new: set[str]) -> None:
    """Send what the repository lacks, and add its paths to a set that has those of earlier attempts."""
    head, there = _look(api, repository)
    missing = [file for file in files if not _is_there(file, there.get(file.path))]
    new.update(file.path for file in missing)
    shards = [file for file in missing if file.path.startswith(_DATA)]
    for first in range(0, len(shards), COMMIT_FILES):
        group = shards[first : first + COMMIT_FILES]
        _commit(api, repository, group, message=f"{len(group)} shards")
    if shards:
        head, there = _look(api, repository)  # another push may have deleted or added some
    rest = [file for file in files if not _is_there(file, there.get(file.path))]
    names = {file.path for file in files}
    stale = [path for path in there if path.startswith((*_DATA, "tokenizer/", SIGNATURE)) and path not in names]
    if rest or stale:
        _commit(api, repository, rest, stale, parent=head, message="Card, receipt and tokenizer")


def _look(api: HfApi, repository: Repository) -> tuple[str | None, dict[str, RepoFile]]:
    """Return the last commit of the branch, and its files by path."""
    head = api.repo_info(repository.name, revision=repository.revision, repo_type="dataset").sha
    entries = api.list_repo_tree(repository.name, recursive=True, revision=head, repo_type="dataset")
    return head, {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def _is_there(file: File, entry: RepoFile | None) -> bool:
    if entry is None:
        return False
    if entry.lfs is not None:
        return bool(entry.lfs.sha256 == file.sha256)
    return bool(entry.blob_id == git_hash(file.read()))


def _commit(
    api: HfApi,
    repository: Repository,
    files: Sequence[File],
    stale: Sequence[str] = (),
    *,
    parent: str | None = None,
    message: str,
) -> None:
    """Upload files and commit them, and delete others in the same commit; if a parent is given, only on top of it.

    Raises:
        FileNotFoundError: If a file went before it was sent.
        IntegrityError: If one has changed.
    """
    with ExitStack() as stack:
        try:
            added = [_addition(file, stack) for file in files]
            deleted = [CommitOperationDelete(path_in_repo=path) for path in stale]
            api.create_commit(
                repository.name,
                [*added, *deleted],
                commit_message=message,
                revision=repository.revision,
                repo_type="dataset",
                parent_commit=parent,
            )
        except (RuntimeError, ValueError):  # of the library, which met a file that went or was replaced
            for file in files:
                file.check(file.out.hash(file.path))
            raise


def _addition(file: File, stack: ExitStack) -> CommitOperationAdd:
    """Return what sends a file: a shard from where it is, anything else as bytes, which nobody replaces meanwhile."""
    is_shard = file.path.startswith(_DATA)
    content = str(stack.enter_context(file.out.open_local(file.path))) if is_shard else file.read()
    added = CommitOperationAdd(path_in_repo=file.path, path_or_fileobj=content)
    file.check(added.upload_info.sha256.hex())
    return added


def _persist(work: Callable[[], T], repository: Repository) -> T:
    """Do work that can be begun again, until it is done or the Hub has failed too often."""
    for attempt in range(ATTEMPTS):
        try:
            return work()
        except Exception as error:
            failure = _failure(error, repository)
            if failure is None:
                raise
            if attempt == ATTEMPTS - 1 or not isinstance(failure, StoreError):
                raise failure from error
            logger.warning("%s; trying again", failure)
            time.sleep(PAUSE_SECONDS * 2**attempt)
    raise AssertionError


def _failure(error: Exception, repository: Repository) -> CppmillError | None:
    """Return the error to raise: of usage if the Hub refuses, of a store if it fails; None for any other."""
    is_upload = type(error) is RuntimeError and error.__cause__ is not None  # which names the file that failed
    cause = error.__cause__ if is_upload else error
    if isinstance(cause, HFValidationError):
        return ConfigError(f"ORG/NAME {repository.name}: {cause}")
    if isinstance(cause, UnicodeEncodeError):  # of a header
        return ConfigError(f"{repository.name}: HF_TOKEN has a character that no token has")
    if cause is None or not is_of_hub(cause):
        return None
    reason = _TOKEN.sub("hf_***", " ".join(str(cause).split()))
    status = cause.response.status_code if isinstance(cause, HfHubHTTPError) else _SERVER_ERROR
    if status == _MOVED:
        return StoreError(
            f"{repository.name}: {repository.revision} changed during the push, perhaps by another one ({reason}); "
            "push again, which sends only what is missing"
        )
    if status < _SERVER_ERROR:
        return ConfigError(f"{repository.name}: the Hub refuses it: {reason}; HF_TOKEN must be allowed to write there")
    return StoreError(f"{repository.name}: the Hub failed: {reason}; push again, which sends only what is missing")
