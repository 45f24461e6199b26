import threading
from pathlib import Path

import filelock
import pytest

from deploy.local import fetch as fetching
from deploy.local.__main__ import main
from deploy.local.fetch import fetch
from pipelines.engines.cache import FILES, engine_path, engines_folder
from schemas.errors import ConfigError


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The engines that were made, each by writing its files."""
    monkeypatch.setenv("CPPMILL_ENGINES", str(tmp_path / "engines"))
    names = []

    def maker(name):
        def make(folder: Path):
            names.append(name)
            for file in FILES.values():
                if folder.name == f".{Path(file).parts[0]}.partial":
                    path = folder.joinpath(*Path(file).parts[1:])
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(name)

        return make

    monkeypatch.setattr(fetching, "MAKERS", {name: maker(name) for name in fetching.MAKERS})
    monkeypatch.setattr(fetching, "install_package", lambda name, **_: names.append(name))
    return names


def test_all_are_fetched_once(made):
    fetch(say=lambda line: None)
    engines = ["versitygw", "gcs", "prism", "boot", "flink", "spark", "dataflow", "torch", "streaming", "megatron"]
    assert made == [*engines, "tokenizers", "chromium"]
    assert all(engine_path(name).exists() for name in FILES)
    fetch(say=lambda line: None)
    assert made[12:] == ["chromium"]


def test_one_is_fetched_by_its_name(made):
    said = []
    fetch(["prism"], say=said.append)
    assert made == ["prism"]
    assert said[-1] == f"prism: {engine_path('prism')}"
    with pytest.raises(ConfigError, match="make engines"):
        engine_path("flink")


def test_a_failed_attempt_leaves_nothing_and_is_made_again(made, monkeypatch):
    whole = fetching.MAKERS["prism"]

    def broken(folder: Path):
        (folder / "prism").write_text("half")
        raise ConfigError("no network")

    monkeypatch.setitem(fetching.MAKERS, "prism", broken)
    with pytest.raises(ConfigError, match="no network"):
        fetch(["prism"], say=lambda line: None)
    with pytest.raises(ConfigError, match="make engines"):
        engine_path("prism")
    monkeypatch.setitem(fetching.MAKERS, "prism", whole)
    fetch(["prism"], say=lambda line: None)
    assert engine_path("prism").read_text() == "prism"


def test_an_unknown_name_is_refused(made, capsys):
    assert main(["fetch", "flunk"]) == 2
    assert "flunk" in capsys.readouterr().err
    assert made == []


def test_a_fetch_that_waits_for_another_says_so(made):
    said, waits = [], threading.Event()

    def say(line):
        said.append(line)
        waits.set()

    cache = engines_folder()
    cache.mkdir(parents=True)
    with filelock.FileLock(cache / ".lock"):
        waiting = threading.Thread(target=fetch, args=(["prism"],), kwargs={"say": say})
        waiting.start()
        assert waits.wait(60)
        assert (said, made) == ([f"Waiting for another fetch, which holds {cache / '.lock'}"], [])
    waiting.join()
    assert said[-1] == f"prism: {engine_path('prism')}"
    fetch(["prism"], say=said.append)
    assert len([line for line in said if line.startswith("Waiting")]) == 1
