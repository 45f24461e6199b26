from pathlib import Path

import pytest

from pipelines.engines.cache import FILES, engine_path, engines_folder
from schemas.errors import ConfigError


def test_a_fetched_engine_is_found_in_the_named_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CPPMILL_ENGINES", str(tmp_path))
    jar = tmp_path / FILES["flink"]
    jar.parent.mkdir()
    jar.touch()
    assert engine_path("flink") == jar


def test_the_folder_is_the_variable_then_the_cache_then_the_home(tmp_path, monkeypatch):
    monkeypatch.delenv("CPPMILL_ENGINES", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert engines_folder() == tmp_path / ".cache/cppmill/engines"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert engines_folder() == Path("/cache/cppmill/engines")
    monkeypatch.setenv("CPPMILL_ENGINES", "/named")
    assert engines_folder() == Path("/named")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_engine_is_an_error_with_its_path_and_what_fetches_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CPPMILL_ENGINES", str(tmp_path))
    with pytest.raises(ConfigError, match=f"{FILES[name]}.*make engines"):
        engine_path(name)
