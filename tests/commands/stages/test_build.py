"""The program of the build, where the machine refuses something."""

import resource
import shutil
from pathlib import Path

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages.build import install_tokenizer
from pipelines.stages.session import open_session
from schemas.errors import ConfigError, ResourceError, VocabularyConfigError


def test_a_tokenizer_that_outgrows_a_limit_is_named(copied_run, tmp_path, limited):
    config = load_run_config(
        flags={"SOURCE": (), "--out": str(tmp_path / "other"), "--tokenizer": str(copied_run.out / "tokenizer")},
        needs_sources=False,
    )
    limited(resource.RLIMIT_FSIZE, 1000)
    with pytest.raises(ResourceError) as found, open_session(config, Reporters()) as session:
        install_tokenizer(session, copied_run.out / "tokenizer")
    assert str(found.value) == (
        f"{tmp_path}/other/tokenizer: a file may have no more bytes here (ulimit -f: 1,000); raise that, and run again"
    )
    assert not [*(tmp_path / "other/.cache/tmp").glob("*")], "it would take the space that is missing"


@pytest.fixture
def given(copied_run, tmp_path):
    """A tokenizer directory that a test may change."""
    return Path(shutil.copytree(copied_run.out / "tokenizer", tmp_path / "given"))


@pytest.fixture
def install(given, tmp_path):
    """Install the tokenizer, and return the lines that say so and the names of its files in OUT."""

    def installed():
        config = load_run_config(
            flags={"SOURCE": (), "--out": str(tmp_path / "other"), "--tokenizer": str(given)}, needs_sources=False
        )
        reporters = Reporters()
        with open_session(config, reporters) as session:
            notes = []
            session.reporter.note = notes.append
            install_tokenizer(session, given)
        return notes, {path.name for path in (tmp_path / "other/tokenizer").iterdir()}

    return installed


def test_what_is_no_part_of_a_given_tokenizer_is_not_copied_and_is_named(given, install):
    names = {path.name for path in given.iterdir() if not path.name.startswith("_unit-")}
    for name in ("chat_template.jinja", "tokenization_evil.py", "vocab.json"):
        (given / name).write_text("{}")
    (given / "link").symlink_to("/etc")
    notes, copied = install()
    assert copied == names
    assert (
        "not copied, as it is no part of the tokenizer: chat_template.jinja, link, tokenization_evil.py, vocab.json"
        in notes
    )


def test_what_is_no_part_of_a_given_tokenizer_is_removed_where_it_was_installed(given, install, tmp_path):
    names, folder = install()[1], tmp_path / "other/tokenizer"
    (folder / "tokenization_evil.py").write_text("")
    (folder / "more").mkdir()
    (folder / "more" / "tokenizer.json").write_text("{}")
    install()
    assert {path.name for path in folder.rglob("*") if path.is_file()} == names


def test_a_vocabulary_that_the_manifest_does_not_record_is_refused(given, install):
    (given / "vocabulary.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"vocabulary\.json: not the vocabulary that the manifest records"):
        install()


@pytest.mark.parametrize(("name", "said"), [("ids.lock", "not UTF-8"), ("decisions.parquet", "not a Parquet file")])
def test_a_broken_file_of_a_given_tokenizer_is_refused(given, install, name, said):
    (given / name).write_bytes(b"\xff")
    with pytest.raises(VocabularyConfigError, match=said):
        install()
