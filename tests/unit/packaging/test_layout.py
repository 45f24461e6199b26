"""The layout of the repository: folders small enough to survey."""

import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

MOST_FILES = 20


def test_no_folder_has_more_files_than_can_be_surveyed(repository: Path) -> None:
    done = subprocess.run(["git", "ls-files"], cwd=repository, capture_output=True, text=True, check=True)
    files = Counter(str(PurePosixPath(name).parent) for name in done.stdout.splitlines())
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}
    assert len(files) > 50
