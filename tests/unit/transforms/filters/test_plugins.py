"""Filters by entry point: those of cppmill, the example package of the docs, and filters that fail."""

from __future__ import annotations

import importlib
import math
import os
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, field_validator

from configs.runs import load_run_config
from schemas.errors import ConfigError, PluginError, ResourceError
from schemas.options import IngestOptions
from schemas.plugins import entry_points as plugins
from schemas.plugins.entry_points import Filter, each_document, find_filter, forget_installed, plugin_code
from tests.example_package import install_example
from transforms.filters.decontamination import Benchmark, read_benchmark
from transforms.filters.properties import PROPERTIES, SAMPLES, check_filter
from transforms.filters.verdicts import filter_versions, find_details, make_content_filter
from transforms.ingest.input_units import plan_inputs
from transforms.sources import document
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

NAME = "mostly_comments"
COMMENT = b"// only a comment\n"
OPTIONS: dict[str, dict[str, Any]] = {
    "generated": {},
    "license": {"allowed_licenses": ("Apache-2.0",), "unlicensed": "keep"},
    "long_lines": {"longest": 100},
    "minified": {},
    "secret": {},
    "unique_lines": {"least": 0.5},
}


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example package, on the path with the metadata that an installer would write."""
    site = tmp_path / "site"
    install_example(site)
    monkeypatch.syspath_prepend(site)
    forget_installed()
    yield importlib.import_module(NAME)
    forget_installed()


@pytest.mark.parametrize("name", OPTIONS)
def test_a_filter_of_cppmill_has_the_properties_that_others_must_have(name: str) -> None:
    found = check_filter(find_filter(name), OPTIONS[name])
    assert any(found), "none of the samples is dropped"


def test_the_filter_of_benchmarks_has_them_too(tmp_path: Path) -> None:
    file = tmp_path / "benchmark.cpp"
    file.write_text("template <class Widget> int count_all_of(Widget first, Widget last, int start, int step);\n")
    benchmark = read_benchmark(IngestOptions(decontaminate=(str(file),)))
    assert isinstance(benchmark, Benchmark)
    found = check_filter(
        find_filter("contaminated"), {"benchmark": benchmark, "least": 1}, documents=[*SAMPLES, file.read_bytes()]
    )
    assert [text is None for text in found] == [True] * len(SAMPLES) + [False]


def test_the_tests_of_the_example_pass_one_for_each_property(example: ModuleType, pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", Path(str(example.__file__)).parent)
    done.assert_outcomes(passed=1 + len(PROPERTIES))


def test_a_filter_of_others_drops_documents_under_its_name(
    example: ModuleType, tmp_path: Path, out: OutputFolder, run_ingest: Callable[..., Any]
) -> None:
    corpus = tmp_path / "p"
    corpus.mkdir()
    for name, content in (("a.cpp", COMMENT), ("b.cpp", b"int b;\n"), ("c.cpp", b"// @generated\n")):
        (corpus / name).write_bytes(content)
    result = run_ingest([corpus], out, IngestOptions(filters={NAME: {"most": 0.5}}, drop_generated=True))
    assert result.ledger.to_json()["documents"]["filtered"] == {NAME: 1, "generated": 1}
    rejected = {row["path"]: row["detail"] for row in result.table("rejects").to_pylist()}
    assert rejected["a.cpp"] == "0.94 of it are comments"


def test_options_and_version_are_in_keys_and_no_key_is_another_without_filters(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.cpp").write_bytes(COMMENT)

    def key(**options: Any) -> str:
        asked = IngestOptions(**options)
        (unit,) = plan_inputs(list_inputs([str(tmp_path / "a.cpp")], asked), asked)
        return unit.key

    plain, first = key(), key(filters={NAME: {"most": 0.5}})
    keys = {plain, first, key(filters={NAME: {"most": 0.6}})}
    monkeypatch.setattr(example, "FILTER", replace(example.FILTER, version="2"))
    forget_installed()
    assert len(keys | {key(filters={NAME: {"most": 0.5}})}) == 4
    assert key() == plain
    assert "filters" not in IngestOptions().to_json()
    on = IngestOptions(drop_generated=True, drop_secrets=True, allowed_licenses=("MIT",), max_line_bytes=9)
    named = {name: version(name) for name in ("license-expression", "detect-secrets")}
    assert filter_versions(on, None) == {**named, "licenses": "3"}


def test_a_run_has_all_options_of_a_filter_and_none_that_it_lacks(example: ModuleType, tmp_path: Path) -> None:
    def load(table: str, *more: str) -> dict[str, Any]:
        file = tmp_path / "run.toml"
        file.write_text(table)
        config = load_run_config(file=file, flags={"--out": str(tmp_path / "out"), "--set": list(more)})
        return config.options.ingest.to_json()["filters"]

    assert load(f"[ingest.filters.{NAME}]") == {NAME: {"most": 0.9}}
    assert load(f"[ingest.filters.{NAME}]", f"ingest.filters.{NAME}.most=0.4") == {NAME: {"most": 0.4}}
    for table, said in (
        (f"[ingest.filters.{NAME}]\nleast = 1", "has no option 'least' (known: most)"),
        (f"[ingest.filters.{NAME}]\nmost = 7", "option 'most': Input should be less than or equal to 1"),
        ("[ingest.filters.nothing_here]", "filter 'nothing_here' is not installed"),
        ("[ingest.filters.secret]", "'secret' is a reason of cppmill's own"),
        ("[ingest.filters.Bad-Name]", "tables, each with a name of"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(table)
        assert said in str(caught.value)


NO_TEXT = pa.array([b"\xff"]).view(pa.string())


def test_what_a_filter_says_of_a_document_is_bounded(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "FILTER", Filter(make=lambda _: each_document(lambda content: "x" * 1_000_000)))
    forget_installed()
    verdict = make_content_filter(IngestOptions(filters={NAME: {}}))(COMMENT, None)
    assert verdict.detail == "x" * 4096


def test_a_filter_that_fails_is_named(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: BaseModel) -> plugins.Find:
        return lambda documents: [1 / 0 for _ in range(documents.num_rows)]

    for made, said in (
        (Filter(version="7", make=fail), r"filter 'mostly_comments' 7 \(cppmill-example 0.1.0\), on 1 .*Zero"),
        (Filter(version="7", make=lambda _: lambda documents: []), "it returned 0 values"),
        (Filter(version="7", make=lambda _: lambda documents: repeat("x")), "it returned more values"),
        (Filter(version="7", make=lambda _: lambda documents: NO_TEXT), "on 1 documents from .*: ArrowInvalid: .*UTF8"),
        (Filter(version="7", make=lambda _: 1 / 0), "cannot start: ZeroDivisionError"),
        ("no filter", "mostly_comments:FILTER is no cppmill.Filter"),
    ):
        monkeypatch.setattr(example, "FILTER", made)
        forget_installed()
        with pytest.raises(PluginError, match=said):
            make_content_filter(IngestOptions(filters={NAME: {}}))(COMMENT, None)


class LooseOptions(BaseModel):
    """Options without bounds."""

    least: float = 1.0
    most: int = 1
    other: Any = None


class FailingOptions(BaseModel):
    """Options whose own code fails."""

    least: int = 1

    @field_validator("least")
    @classmethod
    def fail(cls, value: int) -> int:
        raise TypeError(f"\n{value}")


@pytest.mark.parametrize(
    "options",
    [
        {"least": math.nan},
        {"least": math.inf},
        {"most": 1 << 53},
        {"other": [{"a": -math.inf}]},
        {"other": {"a": 1 << 60}},
    ],
)
def test_an_option_that_no_receipt_can_record_is_refused(options: dict[str, Any]) -> None:
    loose = Filter(version="1", make=lambda _: each_document(lambda _: None), options=LooseOptions)
    with pytest.raises(ConfigError, match=f"filter 'loose': option '{next(iter(options))}': not allowed"):
        loose.record_options("loose", options)
    assert loose.record_options("loose", {"other": [1.5]}) == {"least": 1.0, "most": 1, "other": [1.5]}


def test_a_password_in_an_option_never_gets_into_a_receipt() -> None:
    loose = Filter(version="1", make=lambda _: each_document(lambda _: None), options=LooseOptions)
    for option in ("https://me:secret@host/list", {"lists": ["s3://b/a?X-Amz-Signature=secret"]}):
        with pytest.raises(ConfigError, match="filter 'loose': option 'other': a password does not belong here"):
            loose.record_options("loose", {"other": option})


def test_options_whose_code_fails_are_named_in_one_line() -> None:
    failing = Filter(version="1", make=lambda _: each_document(lambda _: None), options=FailingOptions)
    with pytest.raises(PluginError, match=r"^filter 'failing': its options cannot be read: TypeError: \\n3$"):
        failing.read_options("failing", {"least": 3})


def test_a_package_that_a_filter_needs_and_is_not_there_is_named() -> None:
    needy = Filter(version="1", make=lambda _: each_document(lambda _: None), packages=("no-such-package",))
    with pytest.raises(PluginError, match="a filter needs no-such-package, which is not installed"):
        needy.versions()


def leave(*_: object) -> Any:
    """End the program as if it were done."""
    sys.exit(0)


def test_a_filter_that_leaves_the_program_ends_the_run_with_an_error() -> None:
    with pytest.raises(PluginError, match="from p a.cpp on: SystemExit: 0"):
        find_details("generated", leave, pa.record_batch({"project": ["p"], "path": ["a.cpp"]}))


@pytest.mark.parametrize("raised", [CancelledError(), type("Stop", (BaseException,), {})()])
def test_what_a_filter_raises_may_be_no_exception(raised: BaseException) -> None:
    def find(_: object) -> Iterator[str | None]:
        yield None
        raise raised

    with pytest.raises(PluginError, match=f"from p a.cpp on: {type(raised).__name__}"):
        find_details("generated", find, pa.record_batch({"project": ["p"] * 2, "path": ["a.cpp"] * 2}))
    with pytest.raises(PluginError, match="no FILTER"), plugin_code(lambda: "no FILTER"):
        raise raised
    with pytest.raises(KeyboardInterrupt), plugin_code(lambda: "stopped"):
        raise KeyboardInterrupt


def test_a_filter_that_gets_no_more_memory_is_named() -> None:
    def find(_: object) -> Any:
        raise MemoryError

    with pytest.raises(ResourceError, match=r"filter 'generated'.* from p a\.cpp on: no more memory"):
        find_details("generated", find, pa.record_batch({"project": ["p"], "path": ["a.cpp"]}))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("end", [list, leave, lambda: 1 / 0])
def test_a_process_that_a_filter_forks_goes_no_further(end: Callable[[], Any], tmp_path: Path) -> None:
    def find(documents: pa.RecordBatch) -> list[None]:
        child = os.fork()
        if not child:
            end()
        else:
            os.waitpid(child, 0)
        return [None] * documents.num_rows

    find_details("generated", find, pa.record_batch({"project": ["p"], "path": ["a.cpp"]}))
    with (tmp_path / "reached").open("a") as file:
        file.write("x")
    assert (tmp_path / "reached").read_text() == "x"


@pytest.mark.parametrize("options", [dict, None])
def test_options_that_are_no_model_are_named(options: Any) -> None:
    checked = Filter(version="1", make=lambda _: each_document(lambda _: None), options=options)
    with pytest.raises(PluginError, match="filter 'a': its options cannot be read: AttributeError"):
        checked.read_options("a", {})


def test_a_worker_without_the_filter_says_which_one_it_lacks() -> None:
    with pytest.raises(ConfigError, match="filter 'mostly_comments' is not installed for .*python"):
        make_content_filter(IngestOptions(filters={NAME: {}}))


class Counting:
    """A filter that looks at its neighbours, remembers, or writes into its input."""

    def __init__(self, fault: str) -> None:
        self.fault, self.seen = fault, 0

    def __call__(self, documents: pa.RecordBatch) -> list[str | None]:
        self.seen += documents.num_rows
        if self.fault == "writes":
            data = documents.column("content").buffers()[2]
            memory = (pa.foreign_buffer(data.address, data.size, data)).address
            import ctypes

            ctypes.memset(memory, 65, 1)
        counted = {"size": documents.num_rows, "remembers": self.seen, "writes": 0}[self.fault]
        return [str(counted)] * documents.num_rows


@pytest.mark.parametrize(
    ("fault", "said"),
    [("size", "in other batches"), ("remembers", "a second time"), ("writes", "changed the documents")],
)
def test_a_filter_without_the_properties_is_found(fault: str, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        check_filter(Filter(version="1", make=lambda _: Counting(fault)))


def test_a_filter_of_one_document_at_a_time_gets_its_bytes() -> None:
    assert check_filter(Filter(version="1", make=lambda _: each_document(lambda text: text.decode("latin-1")))) == [
        text.decode("latin-1") for text in SAMPLES
    ]


SECTIONS = b"==== a.cpp\nint a;\n==== note.md\nno C++\n==== b/c.h\nint c;\n"


def test_a_reader_of_others_gives_documents_of_files_with_its_extension(
    example: ModuleType, tmp_path: Path, out: OutputFolder, run_ingest: Callable[..., Any]
) -> None:
    corpus = tmp_path / "p"
    corpus.mkdir()
    (corpus / "all.sections").write_bytes(SECTIONS)
    (corpus / "bad.sections").write_bytes(b"int a;\n")
    (corpus / "d.cpp").write_bytes(b"int d;\n")
    result = run_ingest([corpus], out, IngestOptions(readers=("sections",)))
    assert result.contents == {
        "all.sections/a.cpp": b"int a;\n",
        "all.sections/b/c.h": b"int c;\n",
        "d.cpp": b"int d;\n",
    }
    assert sorted(result.rejects) == [
        ("all.sections/note.md", "filtered", "extension"),
        ("bad.sections", "dead", "corrupt"),
    ]


def test_another_version_of_a_reader_reads_its_files_again_and_no_others(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "all.sections").write_bytes(SECTIONS)
    (tmp_path / "p" / "d.cpp").write_bytes(b"int d;\n")

    def keys(**options: Any) -> dict[str, str]:
        asked = IngestOptions(**options)
        units = plan_inputs(list_inputs([str(tmp_path / "p")], asked), asked)
        return {unit.payload["kind"]: unit.key for unit in units}

    before = keys(readers=("sections",))
    module = importlib.import_module("sections")
    monkeypatch.setattr(module, "READER", replace(module.READER, version="2"))
    forget_installed()
    after = keys(readers=("sections",))
    assert after["file"] == before["file"]
    assert after["other"] != before["other"]
    with pytest.raises(ConfigError, match="reader 'nothing' is not installed"):
        load_run_config(flags={"--out": str(tmp_path / "out"), "--set": ['ingest.readers=["nothing"]']})


def test_a_reader_that_fails_is_named(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: OutputFolder, run_ingest: Any
) -> None:
    (tmp_path / "all.sections").write_bytes(SECTIONS)
    monkeypatch.setattr(importlib.import_module("sections"), "READER", plugins.Reader(version="3", read=lambda _: 1))
    forget_installed()
    with pytest.raises(PluginError, match=r"reader 'sections' 3 \(cppmill-example 0.1.0\), in all.sections: TypeError"):
        run_ingest([tmp_path / "all.sections"], out, IngestOptions(readers=("sections",)))


def test_a_reader_that_leaves_the_program_ends_the_run_with_an_error(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: OutputFolder, run_ingest: Any
) -> None:
    (tmp_path / "all.sections").write_bytes(SECTIONS)
    monkeypatch.setattr(importlib.import_module("sections"), "READER", plugins.Reader(version="3", read=leave))
    forget_installed()
    with pytest.raises(PluginError, match=r"in all\.sections: SystemExit: 0"):
        run_ingest([tmp_path / "all.sections"], out, IngestOptions(readers=("sections",)))


def test_a_reader_gives_no_more_rows_than_an_honest_file_holds(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: OutputFolder, run_ingest: Any
) -> None:
    (tmp_path / "all.sections").write_bytes(b"x")
    rows = [(f"{number}.cpp", b"int a;") for number in range(20)]
    monkeypatch.setattr(importlib.import_module("sections"), "READER", plugins.Reader(version="3", read=lambda _: rows))
    monkeypatch.setattr(document, "_ROWS_FLOOR", 10)
    forget_installed()
    result = run_ingest([tmp_path / "all.sections"], out, IngestOptions(readers=("sections",), drop_duplicates=False))
    assert len(result.contents) == 10
    assert result.rejects == [("all.sections", "dead", "expansion")]


class UnspeakableError(ValueError):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise OSError("no text")


def raise_in_reader(error: BaseException) -> Callable[..., Iterator[Any]]:
    """Return the function of a reader that gives a document, and then raises."""

    def read(_: object) -> Iterator[Any]:
        yield "a.cpp", b"int a;\n"
        raise error

    return read


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (raise_in_reader(GeneratorExit()), "GeneratorExit"),
        (raise_in_reader(BaseExceptionGroup("all", [SystemExit(3)])), r"BaseExceptionGroup: all \(1 sub-exception\)"),
        (raise_in_reader(RuntimeError(UnspeakableError())), "RuntimeError: its text raises OSError"),
        (lambda _: [("a.cpp", b"int a;", 1)], "TypeError: it gave a tuple that is not a pair of name and bytes"),
        (lambda _: {"a.cpp": b"int a;"}, "TypeError: it gave a str that is not a pair of name and bytes"),
        (lambda _: [(b"a.cpp", b"int a;")], "TypeError: it gave a tuple that is not a pair of name and bytes"),
    ],
)
def test_whatever_a_reader_raises_or_gives_ends_the_run_and_is_no_damaged_file(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    out: OutputFolder,
    run_ingest: Any,
    read: Callable[[object], Any],
    said: str,
) -> None:
    (tmp_path / "all.sections").write_bytes(SECTIONS)
    monkeypatch.setattr(importlib.import_module("sections"), "READER", plugins.Reader(version="3", read=read))
    forget_installed()
    with pytest.raises(PluginError, match=rf"in all\.sections: {said}"):
        run_ingest([tmp_path / "all.sections"], out, IngestOptions(readers=("sections",)))


def test_damage_whose_text_cannot_be_had_is_damage(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: OutputFolder, run_ingest: Any
) -> None:
    (tmp_path / "all.sections").write_bytes(SECTIONS)
    read = raise_in_reader(UnspeakableError())
    monkeypatch.setattr(importlib.import_module("sections"), "READER", plugins.Reader(version="3", read=read))
    forget_installed()
    result = run_ingest([tmp_path / "all.sections"], out, IngestOptions(readers=("sections",)))
    assert (list(result.contents), result.rejects) == (["all.sections/a.cpp"], [("all.sections", "dead", "corrupt")])


@pytest.mark.parametrize("version", [5, None, "\ud800", "1\n2"])
def test_a_version_that_no_receipt_can_have_is_refused(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    out: OutputFolder,
    run_ingest: Any,
    version: Any,
) -> None:
    (tmp_path / "all.sections").write_bytes(SECTIONS)
    module = importlib.import_module("sections")
    monkeypatch.setattr(module, "READER", replace(module.READER, version=version))
    forget_installed()
    with pytest.raises(
        PluginError, match=r"reader 'sections' \(cppmill-example 0.1.0\): its version is .*no line of text"
    ):
        run_ingest([tmp_path / "all.sections"], out, IngestOptions(readers=("sections",)))
