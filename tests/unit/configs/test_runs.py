"""Run configurations: layers, types, places, and the message for everything that can be wrong."""

from __future__ import annotations

import json
import os
import resource
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from configs.example import example_file, write_run_file
from configs.execution import usable_threads
from configs.flags import Flag
from configs.layers import profile_names
from configs.runs import RunConfig, load_run_config
from configs.tables import FLAGS, KEYS, TABLES
from pipelines.console.failures import find_user_error
from schemas.errors import ConfigError, ExitCode
from schemas.options import RunOptions

EXAMPLE = Path(__file__).parents[3] / "configs" / "run.example.toml"


def write(folder: Path, text: str) -> Path:
    """Write a run file."""
    file = folder / "run.toml"
    file.write_text(text)
    return file


def problems(*, file: Path | None = None, needs_sources: bool = False, **flags: object) -> list[str]:
    """Return the lines of the error that a configuration gives, none if it is fine."""
    named = {"--" + name.replace("_", "-"): value for name, value in {"out": "/tmp/out", **flags}.items()}
    named["SOURCE"] = named.pop("--source", None)
    try:
        load_run_config(file=file, flags=named, needs_sources=needs_sources)
    except ConfigError as error:
        assert error.exit_code == ExitCode.USAGE
        return str(error).splitlines()
    return []


def test_defaults_are_those_of_the_default_profile() -> None:
    config = load_run_config(flags={"--out": "/tmp/out"})
    assert config.options == RunOptions()
    assert config.options.build.profile == "hybrid-64k"
    assert (config.out, config.sources, config.tokenizer) == (Path("/tmp/out"), (), None)
    assert (config.engine, config.beam_options, config.rehash) == ("local", (), False)
    assert config.threads == config.worker_threads == usable_threads()


@pytest.mark.parametrize(
    ("engine", "threads"), [("local", usable_threads()), ("prism", usable_threads()), ("flink", 1)]
)
def test_a_worker_process_for_each_cpu_has_one_thread(engine: str, threads: int) -> None:
    assert load_run_config(flags={"--out": "/tmp/out", "--engine": engine}).worker_threads == threads
    chosen = load_run_config(flags={"--out": "/tmp/out", "--engine": engine, "--threads": "3"})
    assert (chosen.threads, chosen.worker_threads) == (3, 3)


def test_flags_win_over_the_file_and_the_file_over_the_profile(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[run]\nprofile = "demo"\nthreads = 3\nout = "elsewhere"\n[build]\nvocab_size = 20_000\nmin_hits = 4\n',
    )
    config = load_run_config(file=file, flags={"--vocab-size": "30000", "--threads": None})
    assert config.options.build.vocab_size == 30_000  # flag over file
    assert config.options.build.min_hits == 4  # file over default
    assert config.options.ingest.unit_bytes == 8_388_608  # profile over default
    assert config.options.build.profile == "demo"
    assert (config.threads, config.out) == (3, Path("elsewhere"))


def other_value(flag: Flag) -> object:
    """A value as it is typed, other than the default, that no check refuses."""
    special = {
        "--allowed-licenses": "MIT,ISC",
        "--decontaminate": "s3://b/x",
        "--withdrawn": "s3://b/x",
        "--unlicensed": "keep",
        "--redact": "email,ip",
        "--find-licenses": "texts",
        "--redact-with": "same-length",
        "--unit-pattern": "cpp-lines-1",
        "--drop-duplicates": True,
        "--detect-platforms": True,
        "--platform-prefix-form": "categories",
        "--near-duplicate-permutations": "64",
        "--hf-template": "bos",
    }
    by_type = {bool: not flag.field.default, int: "77", float: "0.5", tuple: "cpp,h", str: "column"}
    return special.get(flag.forms[0], by_type[flag.type])


def test_every_flag_reaches_its_field(tmp_path: Path) -> None:
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "manifest.json").write_text('{"vocab_size": 9000}')
    (tmp_path / "source").mkdir()
    (tmp_path / "platforms.toml").write_text('[os.zenos]\nid = 113\npaths = ["zenos"]\n')
    named = {
        "SOURCE": [str(tmp_path / "source")],
        "--out": str(tmp_path / "out"),
        "--profile": "demo",
        "--tokenizer": str(tmp_path / "tokenizer"),
        "--platforms": str(tmp_path / "platforms.toml"),
        "--threads": "3",
        "--memory-bytes": "1048576",
        "--engine": "local",
        "--": ["--direct_num_workers=2"],
        "--rehash": True,
        "--max-dead-fraction": "0.5",
        "--unit-bytes": "65536",
        "--limit": "7",
        "--sample": "0.25",
        "--near-duplicate-similarity": "0.75",
        "--vocab-size": "9000",
    }
    of_a_build = ("vocab", "rebuild_tokenizer")  # not with --tokenizer
    others = {
        name: other_value(flag)
        for name, flag in FLAGS.items()
        if name not in named and flag.key not in ("kind", "pattern", *of_a_build)
    }
    assert len(named) + len(others) + 2 + len(of_a_build) == len(FLAGS)
    values = {**named, **others}
    config = load_run_config(flags=values, needs_sources=True)
    for name, given in others.items():
        table, key = FLAGS[name].table, FLAGS[name].key
        assert getattr(getattr(config.options, table), key) == FLAGS[name].value(given), name
    options = config.options
    assert config.sources == (str(tmp_path / "source"),)
    assert (config.out, config.tokenizer) == (tmp_path / "out", tmp_path / "tokenizer")
    assert config.memory_bytes == 1 << 20
    assert (config.threads, config.engine, config.beam_options, config.rehash) == (
        3,
        "local",
        ("--direct_num_workers=2",),
        True,
    )
    assert (options.max_dead_fraction, options.build.profile, options.build.vocab_size) == (0.5, "demo", 9000)
    assert (options.ingest.unit_bytes, options.ingest.limit, options.ingest.sample) == (65536, 7, 0.25)
    assert options.ingest.near_duplicate_similarity == 0.75


def test_any_key_is_set_by_its_name_and_flags_win(tmp_path: Path) -> None:
    file = write(tmp_path, "[ingest]\nsample = 0.25\nlimit = 5\n[build]\nmin_hits = 3\n")
    texts = [
        "ingest.drop_secrets=true",
        "ingest.limit = 7",
        'ingest={ sample = 0.5, extensions = ["h"] }',
        "ingest.limit=8",
    ]
    config = load_run_config(file=file, flags={"--out": "/tmp/out", "--sample": "0.75", "--set": texts})
    ingest = config.options.ingest
    assert (ingest.drop_secrets, ingest.limit, ingest.extensions) == (True, 8, ("h",))
    assert ingest.sample == 0.75
    assert config.options.build.min_hits == 3
    config = load_run_config(flags={"--set": ['run.out="/tmp/x"', 'run.profile="demo"', "run.threads=3"]})
    assert (config.out, config.options.build.profile, config.threads) == (Path("/tmp/x"), "demo", 3)


SET_PROBLEMS = [
    ("ingest.unit_byte=5", "--set ingest.unit_byte=5: unknown key; did you mean unit_bytes? (known in [ingest]: "),
    ("run.limit=2", "--set run.limit=2: unknown key; it belongs in [ingest]"),
    ("ingst.limit=1", "--set ingst.limit=1: [ingst]: unknown table; did you mean [ingest]? "),
    ("limit=1", "--set limit=1: limit = 1: outside any table; it belongs in [ingest]"),
    ("ingest.sample=2", "--set ingest.sample=2: not allowed; it takes a number above 0 and up to 1"),
    ('run.threads="2"', '--set run.threads="2": not allowed; it takes a whole number from 1 to 1,024'),
    ('ingest.extensions=["c", ".h"]', '--set ingest.extensions[1]=".h": not allowed; lower case and no dot: "h"'),
    ('run.profile="dmeo"', '--set run.profile="dmeo": unknown profile; did you mean demo? '),
    ('scan.pattern="{origin}"', '--set scan.pattern="{origin}": unknown pattern'),
    ("run.engine=flink", "--set run.engine=flink: not TOML: "),
    ("ingest.sample", "--set ingest.sample: not TOML: "),
]


@pytest.mark.parametrize(("text", "expected"), SET_PROBLEMS, ids=[text for text, _ in SET_PROBLEMS])
def test_a_problem_of_a_set_key_is_reported_like_one_of_a_file(text: str, expected: str) -> None:
    found = problems(set=[text])
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_an_integer_and_its_float_give_the_same_options() -> None:
    whole, real = ({"--out": "/tmp/out", "--sample": text, "--max-dead-fraction": text} for text in ("1", "1.0"))
    assert load_run_config(flags=whole).options.to_json() == load_run_config(flags=real).options.to_json()
    assert json.dumps(load_run_config(flags=whole).options.to_json()["ingest"]["sample"]) == "1.0"


FILE_PROBLEMS = [
    ("[ingest]\nunit_byte = 5", "ingest.unit_byte = 5: unknown key; did you mean unit_bytes? (known in [ingest]: "),
    ('[ingest]\n"Unit-Bytes" = 5', "ingest.Unit-Bytes = 5: unknown key; did you mean unit_bytes? "),
    ("[ingest]\nxyzzy = 5", "ingest.xyzzy = 5: unknown key (known in [ingest]: allowed_licenses, "),
    ("[run]\nlimit = 2", "run.limit = 2: unknown key; it belongs in [ingest]"),
    ('[build]\nprofile = "demo"', 'build.profile = "demo": unknown key; it belongs in [run]'),
    ("[ingst]\nlimit = 1", "[ingst]: unknown table; did you mean [ingest]? (known: [run], [ingest], [scan], "),
    ("threads = 2", "threads = 2: outside any table; it belongs in [run]"),
    ("xyzzy = 2", "xyzzy = 2: outside any table; keys belong in tables"),
    ("ingest = 5", "ingest = 5: not allowed; [ingest] is a table"),
    ("[[ingest]]\nlimit = 1", 'ingest = [{"limit": 1}]: not allowed; [ingest] is a table'),
    ('[run]\nthreads = "2"', 'run.threads = "2": not allowed; it takes a whole number from 1 to 1,024'),
    ("[run]\nthreads = 2.0", "run.threads = 2.0: not allowed; it takes a whole number from 1 to 1,024"),
    ("[run]\nthreads = true", "run.threads = true: not allowed; it takes a whole number from 1 to 1,024"),
    (
        "[run]\nmemory_bytes = 5",
        "run.memory_bytes = 5: not allowed; it takes a whole number from 1,048,576 to 9,007,199,254,740,991",
    ),
    ("[run]\nthreads = 0", "run.threads = 0: not allowed; it takes a whole number from 1 to 1,024"),
    (
        '[run]\nengine = "flonk"',
        'run.engine = "flonk": not allowed; it takes one of "local", "flink", "spark", "prism", "dataflow"',
    ),
    ('[run]\nrehash = "yes"', 'run.rehash = "yes": not allowed; it takes true or false'),
    ('[run]\nsources = "src"', 'run.sources = "src": not allowed; it takes a list of strings'),
    ('[run]\nsources = ["src", 5]', "run.sources[1] = 5: not allowed; it takes a string"),
    ("[run]\nmax_dead_fraction = nan", "run.max_dead_fraction = NaN: not allowed; it takes a number from 0 to 1"),
    ("[ingest]\nsample = 0", "ingest.sample = 0: not allowed; it takes a number above 0 and up to 1"),
    ("[ingest]\nlimit = 0", "ingest.limit = 0: not allowed; it takes a whole number from 1 to 9,007,199,254,740,991"),
    (
        "[ingest]\nunit_bytes = 1",
        "ingest.unit_bytes = 1: not allowed; it takes a whole number from 65,536 to 2,147,483,648",
    ),
    ('[ingest]\npath_column = ""', 'ingest.path_column = "": not allowed; it is empty'),
    ('[ingest]\nextensions = ["cpp", ".CC"]', 'ingest.extensions[1] = ".CC": not allowed; lower case and no dot: "cc"'),
    (
        '[build]\ndistinctive_shapes = ["compound", "camel"]',
        'build.distinctive_shapes[1] = "camel": not allowed; it takes one of "double_underscore", "screaming_case", '
        '"api_prefix", "compound"',
    ),
    ("[ingest]\ncontent_column = 2001-01-01", "ingest.content_column = 2001-01-01: not allowed; it takes a string"),
    (
        '[scan]\npattern = "cpp-word-1"',
        'scan.pattern = "cpp-word-1": unknown pattern; did you mean cpp-words-1? (known: cpp-words-1',
    ),
    (
        '[scan]\nunit_pattern = "cpp-line-1"',
        'scan.unit_pattern = "cpp-line-1": unknown pattern; did you mean cpp-lines-1? (known: cpp-words-1',
    ),
    (
        '[scan]\npattern = "cpp-lines-1"',
        'scan.pattern = "cpp-lines-1": pattern "cpp-lines-1" cuts lines of words: give it as unit_pattern',
    ),
    (
        '[scan]\nunit_pattern = "cpp-words-1"',
        'scan.unit_pattern = "cpp-words-1": unit_pattern "cpp-words-1" cuts no lines made of the words of ',
    ),
    (
        "[build]\nsuperwords_after = 0.75",
        "build.superwords_after = 0.75: superwords are learned in lines, and none are counted; set unit_pattern = ",
    ),
    (
        "[build]\nproject_cap = 1.0",
        "build.project_cap = 1.0: words are not counted by project; set partition_by_project = true in [scan]",
    ),
    (
        '[scan]\nunit_pattern = "cpp-lines-1"\n[build]\nsuperwords_after = 1.0',
        "build.superwords_after = 1.0: not allowed; it takes a number from 0.1 to 0.99",
    ),
    ('[run]\nprofile = "hybrid"', 'run.profile = "hybrid": unknown profile; did you mean hybrid-64k? (known: demo, '),
    ("[run]\nprofile = 5", "run.profile = 5: not allowed; it takes a string"),
    ("[run", "not TOML: "),
    ("[run]\nthreads = 1\nthreads = 2", "not TOML: "),
]


@pytest.mark.parametrize(("text", "expected"), FILE_PROBLEMS, ids=[text for text, _ in FILE_PROBLEMS])
def test_a_problem_of_a_file_names_file_key_value_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    file = write(tmp_path, text + "\n")
    found = problems(file=file)
    assert len(found) == 1, found
    assert found[0].startswith(f"{file}: {expected}")


FLAG_PROBLEMS = [
    ("threads", "two", "--threads two: not allowed; it takes a whole number from 1 to 1,024"),
    ("threads", "1.5", "--threads 1.5: not allowed; it takes a whole number from 1 to 1,024"),
    ("threads", "", '--threads "": not allowed; it takes a whole number from 1 to 1,024'),
    ("vocab_size", "-5", "--vocab-size -5: not allowed; it takes a whole number from 1 to 1,048,576"),
    ("unit_bytes", "64MB", "--unit-bytes 64MB: not allowed; it takes a whole number from 65,536 to 2,147,483,648"),
    ("sample", "1.01", "--sample 1.01: not allowed; it takes a number above 0 and up to 1"),
    ("sample", "nan", "--sample NaN: not allowed; it takes a number above 0 and up to 1"),
    (
        "near_duplicate_similarity",
        "80",
        "--near-duplicate-similarity 80: not allowed; it takes a number from 0.5 to 1",
    ),
    (
        "memory_bytes",
        "99999999999999999999",
        "--memory-bytes 99999999999999999999: not allowed; it takes a whole number from 1,048,576 to "
        "9,007,199,254,740,991",
    ),
    ("limit", "many", "--limit many: not allowed; it takes a whole number from 1 to 9,007,199,254,740,991"),
    ("max_dead_fraction", "inf", "--max-dead-fraction Infinity: not allowed; it takes a number from 0 to 1"),
    (
        "engine",
        "flink9",
        '--engine flink9: not allowed; it takes one of "local", "flink", "spark", "prism", "dataflow"',
    ),
    (
        "profile",
        "dmeo",
        "--profile dmeo: unknown profile; did you mean demo? (known: demo, hybrid-128k-superwords, "
        "hybrid-128k-superwords-3, hybrid-16k-2, hybrid-32k-2, hybrid-64k, hybrid-64k-2, hybrid-64k-3, "
        "hybrid-64k-superwords, hybrid-64k-superwords-2, hybrid-64k-superwords-3, sentencepiece-32k, text-16k, "
        "text-32k, text-sentencepiece-1k)",
    ),
    ("out", "", '--out "": not allowed; it is empty'),
    ("out", "s3://bucket//run", "--out s3://bucket//run: not allowed; a name between its slashes is empty, too long, "),
    ("out", "s3://bucket/a/../run", "--out s3://bucket/a/../run: not allowed; a name between its slashes is empty, "),
    ("out", "s3://bucket", "--out s3://bucket: not allowed; it takes a local or mounted folder, or s3://BUCKET/PREFIX"),
    (
        "out",
        "ftp://host/x",
        "--out ftp://host/x: not allowed; it takes a local or mounted folder, or s3://BUCKET/PREFIX",
    ),
    ("out", "/dev/null/x", "--out /dev/null/x: /dev/null is a file; it takes a folder, new or of an earlier run"),
    ("tokenizer", "/no/such", "--tokenizer /no/such: no tokenizer; it takes a directory with a manifest.json, "),
]


@pytest.mark.parametrize(("flag", "value", "expected"), FLAG_PROBLEMS, ids=[f"{f} {v}" for f, v, _ in FLAG_PROBLEMS])
def test_a_problem_of_a_flag_names_the_flag(flag: str, value: str, expected: str) -> None:
    found = problems(**{flag: value})
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, '[ingest]\nunit_byte = 5\nsample = 2\n[run]\nsources = ["/no/such"]\nthreads = "x"\n')
    found = problems(file=file, needs_sources=True, limit="x", out=None, threads="2")
    starts = ["ingest.unit_byte", "ingest.sample", "run.threads", "run.sources[0]", "--limit x", "no output folder"]
    assert len(found) == len(starts)
    for start in starts:
        assert any(start in line for line in found), start


@pytest.mark.parametrize("content", [b'[run]\nprofile = "\xff"', None], ids=["not UTF-8", "missing"])
def test_a_file_that_cannot_be_read_is_the_only_problem(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "run.toml"
    if content is not None:
        file.write_bytes(content)
    found = problems(file=file, needs_sources=True, out=None)
    assert len(found) == 1
    assert found[0].startswith(f"{file}: ")


def test_a_folder_is_not_a_run_file(tmp_path: Path) -> None:
    assert problems(file=tmp_path) == [f"{tmp_path}: cannot be read: Is a directory"]


class TestPlaces:
    """Sources, output folder and tokenizer."""

    def test_sources_are_needed_only_where_they_are_read(self) -> None:
        assert problems(needs_sources=False) == []
        assert problems(needs_sources=True)[0].startswith("no sources: ")
        assert problems(needs_sources=True, source=["/no/such"]) == ["SOURCE /no/such: no such file or folder"]

    @pytest.mark.parametrize("source", ["/no/such/*.cpp", "s3://bucket/x", "memory://x", "/no/such/[ab].tar"])
    def test_globs_and_remote_sources_are_left_to_the_listing(self, source: str) -> None:
        assert problems(needs_sources=True, source=[source]) == []

    def test_a_prefix_of_an_object_store_is_taken_as_it_is(self) -> None:
        config = load_run_config(flags={"--out": "s3://bucket/a/b", "--tokenizer": "s3://bucket/c"})
        assert (config.out, config.tokenizer) == ("s3://bucket/a/b", "s3://bucket/c")
        with pytest.raises(ConfigError, match="a local folder is needed"):
            _ = config.out_folder

    def test_the_output_lies_apart_from_remote_sources(self) -> None:
        (inside,) = problems(needs_sources=True, source=["s3://bucket/in"], out="s3://bucket/in/out")
        assert inside.startswith("--out s3://bucket/in/out: it lies inside the source s3://bucket/in, ")
        assert problems(needs_sources=True, source=["s3://bucket/in", "gs://bucket/out"], out="s3://bucket/out") == []

    def test_without_its_library_an_object_store_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        (missing,) = problems(out="s3://bucket/out")
        assert missing.endswith("needs s3fs, which is not installed: pip install 'cppmill[s3]'")

    def test_a_name_that_is_not_utf8_is_a_name(self, tmp_path: Path) -> None:
        source = tmp_path / "caf\udce9"
        source.mkdir()
        config = load_run_config(flags={"SOURCE": [str(source)], "--out": str(tmp_path / "out")}, needs_sources=True)
        assert config.sources == (str(source),)

    def test_a_tilde_is_the_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "src").mkdir()
        file = write(tmp_path, '[run]\nsources = ["~/src", "~/src/*.tar", "~", "a~/*"]\nout = "/tmp/out~"\n')
        config = load_run_config(file=file)
        assert config.sources == (f"{tmp_path}/src", f"{tmp_path}/src/*.tar", str(tmp_path), "a~/*")
        assert config.out == Path("/tmp/out~")
        (missing,) = problems(needs_sources=True, source=["~/srx"])
        assert missing == "SOURCE ~/srx: no such file or folder"

    def test_the_output_lies_apart_from_the_sources(self, tmp_path: Path) -> None:
        inside, source = tmp_path / "source" / "out", tmp_path / "source"
        inside.mkdir(parents=True)
        (lies_inside,) = problems(needs_sources=True, source=[str(source)], out=str(inside))
        assert lies_inside.startswith(f"--out {inside}: it lies inside the source {source}, ")
        (contains,) = problems(needs_sources=True, source=[str(inside)], out=str(source))
        assert contains.startswith(f"--out {source}: the source {inside} lies inside it; ")
        (same,) = problems(needs_sources=True, source=[str(source)], out=str(source))
        assert same.startswith(f"--out {source}: it lies inside")
        assert problems(needs_sources=True, source=[str(source)], out=str(tmp_path / "out")) == []

    def test_links_do_not_hide_that_the_output_lies_inside(self, tmp_path: Path) -> None:
        (tmp_path / "source").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "source")
        assert problems(needs_sources=True, source=[str(tmp_path / "source")], out=str(tmp_path / "link" / "out"))

    def test_a_hidden_folder_of_a_source_may_be_the_output(self, tmp_path: Path) -> None:
        assert problems(needs_sources=True, source=[str(tmp_path)], out=str(tmp_path / ".cppmill" / "out")) == []

    def test_a_given_tokenizer_leaves_nothing_to_build(self, tmp_path: Path) -> None:
        (tmp_path / "manifest.json").write_text(json.dumps({"vocab_size": 65536}))
        (tmp_path / "ids.lock").touch()
        found = problems(tokenizer=str(tmp_path), vocab=str(tmp_path), rebuild_tokenizer=True)
        assert [line.split(":")[0] for line in found] == ["--rebuild-tokenizer", f"--vocab {tmp_path}"]
        assert all("a given tokenizer is not built" in line for line in found)

    def test_a_vocabulary_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        (line,) = problems(vocab=str(tmp_path))
        assert line.startswith(f"--vocab {tmp_path}: no vocabulary; it takes a folder that `cppmill vocab init` made")

    def test_a_file_may_name_a_vocabulary_at_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "acme").mkdir()
        (tmp_path / "acme/ids.lock").touch()
        file = write(tmp_path, '[run]\nvocab = "~/acme"\nrebuild_tokenizer = true\n')
        given = {"--vocab": str(tmp_path / "acme"), "--rebuild-tokenizer": True}
        for config in (
            load_run_config(file=file, flags={"--out": "o"}),
            load_run_config(flags={"--out": "o", **given}),
        ):
            assert (config.vocab, config.rebuild_tokenizer) == (tmp_path / "acme", True)

    def test_another_size_than_the_tokenizers_names_both(self, tmp_path: Path) -> None:
        (tmp_path / "manifest.json").write_text('{"vocab_size": 16384}')
        assert problems(tokenizer=str(tmp_path), vocab_size="16384") == []
        assert problems(tokenizer=str(tmp_path)) == []  # the profile's size is not asked for
        assert problems(tokenizer=str(tmp_path), vocab_size="65536") == [
            f"--vocab-size 65536: the tokenizer {tmp_path} has 16,384 ids; leave it out"
        ]

    @pytest.mark.parametrize("manifest", ["{", "[]", '{"vocab_size": null}', "{}"])
    def test_a_damaged_manifest_is_reported(self, tmp_path: Path, manifest: str) -> None:
        (tmp_path / "manifest.json").write_text(manifest)
        assert problems(tokenizer=str(tmp_path)) == [
            f"--tokenizer {tmp_path}: its manifest.json is damaged: no vocab_size can be read"
        ]


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_loads(name: str) -> None:
    assert problems(profile=name) == []


def test_there_are_the_profiles_that_the_help_names() -> None:
    assert profile_names() == [
        "demo",
        "hybrid-128k-superwords",
        "hybrid-128k-superwords-3",
        "hybrid-16k-2",
        "hybrid-32k-2",
        "hybrid-64k",
        "hybrid-64k-2",
        "hybrid-64k-3",
        "hybrid-64k-superwords",
        "hybrid-64k-superwords-2",
        "hybrid-64k-superwords-3",
        "sentencepiece-32k",
        "text-16k",
        "text-32k",
        "text-sentencepiece-1k",
    ]


def test_the_example_has_every_key_with_its_default(tmp_path: Path) -> None:
    example = tomllib.loads(EXAMPLE.read_text())
    defaults = {name: json.loads(json.dumps(dict(TABLES[name]()))) for name in TABLES}
    assert EXAMPLE.read_text() == example_file(), "run python -m configs.example > configs/run.example.toml"
    uncommented = tomllib.loads("[run]" + EXAMPLE.read_text().split("[run]", 1)[1].replace("\n# ", "\n"))
    assert {name: frozenset(table) for name, table in uncommented.items()} == KEYS
    for name, table in example.items():
        assert table == {key: defaults[name][key] for key in table}
        assert all(defaults[name][key] is None for key in KEYS[name] - table.keys() - {"sources", "threads"})
    file = write(tmp_path, EXAMPLE.read_text())
    assert load_run_config(file=file, flags={"--out": "/tmp/out"}).options == RunOptions()


def test_a_file_to_edit_changes_nothing_until_a_comment_becomes_an_option(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    write_run_file(file)
    text = file.read_text()
    assert tomllib.loads(text) == {name: {} for name in TABLES}
    assert load_run_config(file=file, flags={"--out": "/tmp/out"}).options == RunOptions()
    header, tables = text.split("[run]", 1)
    assert f"cppmill run --config {file}" in header
    keys = tomllib.loads("[run]" + tables.replace("\n# ", "\n"))
    assert {name: frozenset(table) for name, table in keys.items()} == KEYS
    file.write_text("precious")
    with pytest.raises(ConfigError, match="is not overwritten"):
        write_run_file(file)
    assert file.read_text() == "precious"


def test_a_file_to_edit_that_cannot_be_written_whole_is_not_there(
    tmp_path: Path, limited: Callable[[int, int], None]
) -> None:
    limited(resource.RLIMIT_FSIZE, 100)
    with pytest.raises(OSError) as found:
        write_run_file(tmp_path / "mine.toml")
    refused = find_user_error(found.value)
    assert refused is not None
    assert refused.exit_code == ExitCode.FAILED_CHECK
    assert refused.message.startswith(f"{tmp_path}/mine.toml: a file may have no more bytes here")
    assert not list(tmp_path.iterdir())


def test_a_kill_before_the_file_to_edit_is_whole_leaves_no_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: int) -> None:
        assert not (tmp_path / "mine.toml").exists()

    monkeypatch.setattr(os, "fsync", look)
    write_run_file(tmp_path / "mine.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_configuration_is_frozen_and_typed() -> None:
    config = RunConfig(out=Path("/tmp/out"))
    with pytest.raises(ValidationError):
        config.threads = 2  # type: ignore[misc]
    with pytest.raises(ValidationError):
        RunConfig(out=Path("/tmp/out"), threads=0)
    with pytest.raises(ValidationError):
        RunConfig(out=Path("/tmp/out"), thread=1)  # type: ignore[call-arg]


def test_text_that_no_receipt_can_have_is_refused_and_such_a_path_is_not(tmp_path: Path) -> None:
    flags = {"--out": str(tmp_path), "SOURCE": ("\udcff",), "--content-column": "\udcff"}
    with pytest.raises(ConfigError) as refused:
        load_run_config(flags=flags)
    assert str(refused.value) == "--content-column \udcff: not allowed; it is not UTF-8"


@pytest.mark.parametrize("table", ["run", "ingest"])
def test_a_nul_in_a_place_is_refused(table: str, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    key = {"run": 'out = "a\\u0000b"\nsources = ["x\\u0000"]\nplatforms = "\\u0000"', "ingest": 'withdrawn = "\\u0000"'}
    file.write_text(f"[{table}]\n{key[table]}\n")
    with pytest.raises(ConfigError) as refused:
        load_run_config(file=file, flags={"--out": None if table == "run" else str(tmp_path)})
    lines = [line for line in str(refused.value).splitlines() if line.endswith("not allowed; it has a NUL character")]
    assert len(lines) == key[table].count("=")
    assert all(line.startswith(f"{file}: {table}.") for line in lines)


def test_an_output_folder_that_is_a_loop_of_links_or_not_utf8_is_refused_in_a_line(tmp_path: Path) -> None:
    loop, source = tmp_path / "loop", tmp_path / "source"
    loop.symlink_to("loop")
    source.mkdir()
    load_run_config(flags={"SOURCE": [str(source)], "--out": str(loop)}, needs_sources=True)  # writing to it fails
    with pytest.raises(ConfigError, match=r"^--out .*: not allowed; its path is not UTF-8"):
        load_run_config(flags={"SOURCE": [str(source)], "--out": f"{tmp_path}/\udcff"}, needs_sources=True)


def test_thousands_of_unknown_names_are_counted_and_a_file_of_megabytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    licenses = ", ".join(f'"none-{number}"' for number in range(5_000))
    file.write_text("[scan]\n" + "".join(f"k{number} = 1\n" for number in range(5_000)))
    with pytest.raises(ConfigError) as refused:
        load_run_config(file=file, flags={"--out": str(tmp_path)})
    assert str(refused.value).splitlines()[-1] == f"{file}: 4,980 more unknown keys in [scan]"
    file.write_text(f"[ingest]\nallowed_licenses = [{licenses}]\n")
    with pytest.raises(ConfigError) as refused:
        load_run_config(file=file, flags={"--out": str(tmp_path)})
    assert len(str(refused.value).splitlines()) == 21
    assert "4,980 more are no SPDX identifiers" in str(refused.value)
    file.write_text("#" + "x" * (4 << 20))
    with pytest.raises(ConfigError, match=r"run\.toml: not TOML: more than 4,194,304 characters$"):
        load_run_config(file=file, flags={"--out": str(tmp_path)})
