import sys

import pytest

from deploy.local.commands import run
from schemas.errors import ConfigError


def test_a_failure_shows_the_end_of_the_log(tmp_path):
    program = "import sys; print('\\n'.join(map(str, range(100)))); sys.exit(3)"
    with pytest.raises(ConfigError, match=r"exit code 3.*\n80\n(\d+\n)+99") as caught:
        run([sys.executable, "-c", program], cwd=tmp_path, log=tmp_path / "log", hint="")
    assert "\n79\n" not in str(caught.value)


def test_a_missing_program_is_reported_with_the_hint(tmp_path):
    with pytest.raises(ConfigError, match="no-such-program: not found; install it"):
        run(["no-such-program"], cwd=tmp_path, log=tmp_path / "log", hint="install it")
