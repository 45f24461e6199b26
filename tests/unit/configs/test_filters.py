"""Filters that cannot be used as they are asked for are told before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from configs.runs import RunConfig, load_run_config
from schemas.errors import ConfigError


def load(tmp_path: Path, ingest: str) -> RunConfig:
    file = tmp_path / "run.toml"
    file.write_text(f"[ingest]\n{ingest}\n")
    return load_run_config(file=file, flags={"--out": str(tmp_path / "out")})


def problems(tmp_path: Path, ingest: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, ingest)
    return [line.removeprefix(f"{tmp_path / 'run.toml'}: ") for line in str(caught.value).splitlines()]


def test_licences_of_spdx_are_taken_in_any_case(tmp_path: Path) -> None:
    names = '["mit", "Apache-2.0", "GPL-2.0+", "Apache-2.0 WITH LLVM-exception", "LicenseRef-Ours"]'
    assert len(load(tmp_path, f"allowed_licenses = {names}").options.ingest.allowed_licenses) == 5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Apache 2", "no SPDX identifier; did you mean Apache-2.0 or "),
        ("BSD-3-Claus", "no SPDX identifier; did you mean BSD-3-Clause or "),
        ("MIT OR ISC", "no SPDX identifier"),
        ("LLVM-exception", "no SPDX identifier"),
        ("~~~~~~~~~~", "no SPDX identifier, as https://spdx.org/licenses has"),
        ("", "not allowed; it is empty"),
    ],
)
def test_an_unknown_licence_is_reported_with_the_nearest(name: str, said: str, tmp_path: Path) -> None:
    (line,) = problems(tmp_path, f'allowed_licenses = ["MIT", "{name}"]')
    assert line.startswith(f'ingest.allowed_licenses[1] = "{name}": {said}')


@pytest.mark.parametrize(
    ("module", "ingest", "extra"),
    [
        ("license_expression", 'allowed_licenses = ["MIT"]', "licenses"),
        ("detect_secrets", "drop_secrets = true", "secrets"),
        ("rensa", "near_duplicate_similarity = 0.8", "near-duplicates"),
    ],
)
def test_a_missing_library_is_reported(
    module: str, ingest: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (line,) = problems(tmp_path, ingest)
    assert line.endswith(f"not installed: pip install 'cppmill[{extra}]'")


@pytest.mark.parametrize("place", ["~no-such-user/a", "a" * 300])
@pytest.mark.parametrize("key", ["decontaminate", "withdrawn"])
def test_a_place_that_cannot_be_is_reported(key: str, place: str, tmp_path: Path) -> None:
    (line,) = problems(tmp_path, f'{key} = ["{place}"]' if key == "decontaminate" else f'{key} = "{place}"')
    assert line.startswith(f"ingest.{key}")
    assert "no such file" in line


@pytest.mark.parametrize("key", ["limit", "max_line_bytes", "max_expansion"])
def test_a_number_that_no_receipt_can_have_is_reported(key: str, tmp_path: Path) -> None:
    (line,) = problems(tmp_path, f"{key} = {1 << 53}")
    assert line.startswith(f"ingest.{key} = {1 << 53}: not allowed; it takes a whole number from ")


def test_a_missing_benchmark_is_reported(tmp_path: Path) -> None:
    (tmp_path / "b.txt").touch()
    places = f'["{tmp_path}/b.txt", "{tmp_path}/c.txt", "s3://b/c", "{tmp_path}/*.cpp"]'
    (line,) = problems(tmp_path, f"decontaminate = {places}")
    assert line.startswith("ingest.decontaminate[1] = ")
    assert line.endswith(": no such file or folder")


def test_what_becomes_of_the_unlicensed_is_one_of_two(tmp_path: Path) -> None:
    (line,) = problems(tmp_path, 'allowed_licenses = ["MIT"]\nunlicensed = "maybe"')
    assert line.endswith('not allowed; it takes one of "drop", "keep"')


def test_near_duplicates_are_for_distinct_documents_alone(tmp_path: Path) -> None:
    (line,) = problems(tmp_path, "near_duplicate_similarity = 0.8\ndrop_duplicates = false")
    assert line.startswith("ingest.near_duplicate_similarity = 0.8: near-duplicates are found among distinct")


def test_a_missing_library_of_a_flag_names_the_flag_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"--out": str(tmp_path), "--near-duplicate-similarity": "0.8"}
    load_run_config(flags=flags)
    monkeypatch.setitem(sys.modules, "rensa", None)
    needs = r"^--near-duplicate-similarity 0.8: needs rensa, which is not installed: pip install 'cppmill\["
    with pytest.raises(ConfigError, match=needs):
        load_run_config(flags=flags)
    load_run_config(flags={"--out": str(tmp_path)})


def test_a_number_of_permutations_that_is_not_offered_is_refused(tmp_path: Path) -> None:
    (line,) = problems(tmp_path, "near_duplicate_permutations = 100")
    assert "it takes one of 64, 128, 256, 512, 1024" in line


FILTER_FLAGS = [
    ("--drop-secrets", True, "drop_secrets", True),
    ("--drop-binary", False, "drop_binary", False),
    ("--drop-generated", True, "drop_generated", True),
    ("--drop-minified", True, "drop_minified", True),
    ("--allowed-licenses", "MIT, Apache-2.0", "allowed_licenses", ("MIT", "Apache-2.0")),
    ("--unlicensed", "keep", "unlicensed", "keep"),
    ("--max-line-bytes", "1000", "max_line_bytes", 1000),
    ("--min-unique-line-ratio", "0.25", "min_unique_line_ratio", 0.25),
    ("--decontaminate", "s3://b/x,s3://b/y", "decontaminate", ("s3://b/x", "s3://b/y")),
    ("--near-duplicate-permutations", "512", "near_duplicate_permutations", 512),
]


@pytest.mark.parametrize(("flag", "typed", "key", "value"), FILTER_FLAGS, ids=[entry[0] for entry in FILTER_FLAGS])
def test_a_filter_is_set_by_its_flag(flag: str, typed: object, key: str, value: object) -> None:
    config = load_run_config(flags={"--out": "/tmp/out", flag: typed})
    assert getattr(config.options.ingest, key) == value


@pytest.mark.parametrize(
    ("flag", "typed", "said"),
    [
        (
            "--allowed-licenses",
            "MIT,Apache 2",
            "--allowed-licenses Apache 2: no SPDX identifier; did you mean Apache-2.0",
        ),
        ("--decontaminate", "/no/such", "--decontaminate /no/such: no such file or folder"),
        ("--withdrawn", "/no/such", "--withdrawn /no/such: no such file; `cppmill withdraw FILE` makes one"),
        ("--unlicensed", "maybe", '--unlicensed maybe: not allowed; it takes one of "drop", "keep"'),
        ("--extensions", "cpp,.CC", '--extensions .CC: not allowed; lower case and no dot: "cc"'),
    ],
)
def test_a_problem_of_a_filters_flag_names_the_flag(flag: str, typed: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_run_config(flags={"--out": "/tmp/out", flag: typed})
    (line,) = str(caught.value).splitlines()
    assert line.startswith(said)


@pytest.mark.parametrize("key", ["decontaminate", "readers", "redact", "filters"])
def test_thousands_of_wrong_entries_have_few_lines(key: str, tmp_path: Path) -> None:
    names = [f"no_such_{number}" for number in range(3_000)]
    entries = ", ".join(f"{name} = {{}}" if key == "filters" else f'"{name}"' for name in names)
    lines = problems(tmp_path, f"{key} = {{{entries}}}" if key == "filters" else f"{key} = [{entries}]")
    assert 1 < len(lines) < 30
    assert "2,9" in lines[-1]
