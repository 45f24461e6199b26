"""A worker with another native core fails before its first unit, and says what to install."""

import resource
import zipfile

import cppmill_core
import pytest

from pipelines.engines import worker_check
from pipelines.engines.worker_check import check_worker, check_workers
from schemas.errors import ConfigError
from schemas.units import Stage, Unit
from transforms.sources.files import open_input
from transforms.units.flow import run_flow

UNIT = Unit(stage=Stage.SCAN, key="k", num_bytes=1, label="l", payload={})


def test_this_process_passes():
    check_worker(cppmill_core.__version__)


def test_another_version_is_named_beside_the_launchers():
    with pytest.raises(ConfigError, match=f"has version {cppmill_core.__version__}, the launcher's has 9.9.9; install"):
        check_worker("9.9.9")


def test_other_ids_are_refused(monkeypatch):
    monkeypatch.setattr(worker_check, "GOLDEN_IDS", (1, 2))
    with pytest.raises(ConfigError, match=r"not to \[1, 2\]; install the wheel"):
        check_worker(cppmill_core.__version__)


def test_the_golden_text_has_every_merge_and_a_byte_that_is_not_text():
    assert {257, 258, 259} <= set(worker_check.GOLDEN_IDS)
    assert b"\xff" in worker_check.GOLDEN_TEXT


def test_units_are_passed_on():
    assert list(run_flow(check_workers(), [UNIT])) == [UNIT]


def test_a_worker_of_another_version_runs_no_unit():
    with pytest.raises(ConfigError, match=r"the launcher's has 9\.9\.9"):
        list(run_flow(check_workers("9.9.9"), [UNIT]))


def test_a_process_that_goes_on_to_another_flow_opens_archives_again(tmp_path):
    for text in ("int one;", "int two;"):
        with zipfile.ZipFile(tmp_path / "new.zip", "w") as archive:
            archive.writestr("a.cpp", text)
        (tmp_path / "new.zip").replace(tmp_path / "a.zip")
        list(run_flow(check_workers(), [UNIT]))
        with open_input(f"zip://::file://{tmp_path}/a.zip", "a.cpp") as file:
            assert file.read() == text.encode()


def test_a_refusal_of_the_disk_names_the_file(limited):
    worker_check._encode_golden_text.cache_clear()
    limited(resource.RLIMIT_FSIZE, 100)
    with pytest.raises(OSError, match=r"File too large: '.*/tokenizer\.json'"):
        check_worker(cppmill_core.__version__)
