"""The report of a real run: its numbers are the receipt's, it fetches nothing, and it does not grow with the corpus."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from functools import reduce
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pipelines.exports.frame import open_source
from pipelines.report.facts import read_facts
from pipelines.report.program import count_tokens, default_page, read_comparison, render_report
from pipelines.report.sections import RULES
from pipelines.report.text import fold_runs
from pipelines.tokenizers.codec import load_tokenizer
from schemas.errors import IntegrityError
from schemas.export_options import SequenceOptions
from tests.signing import rewrite, seal
from tests.stores import new_prefix
from tokenizer_build.decisions import Rule
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import open_url
from transforms.tokens.usage import ProjectUsage, read_usage


class Page(HTMLParser):
    """What a page says of the receipt, the data of its tables, its text, and everything that it would fetch."""

    def __init__(self, html):
        super().__init__()
        self.said, self.fetched, self.sections, self._texts = [], [], [], []
        self._path = None
        self.feed(html)
        self.data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        links = [value for name, value in names.items() if name in ("src", "href", "action", "srcset")]
        self.fetched += [link for link in links if not link.startswith(("data:", "#"))]
        if tag == "section":
            self.sections.append(names["id"])
        self._path = names.get("data-receipt")

    def handle_data(self, text):
        if self._path:
            self.said.append((self._path, text))
            self._path = None


def shown(receipt, path):
    """What the page has to show of an entry of the receipt."""
    value = reduce(lambda found, name: found[name], path.split("."), receipt)
    return f"{value:,}" if isinstance(value, int) else value


@pytest.fixture(scope="module")
def html(run, cppmill, tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "page.html"
    done = cppmill("report", run.out, "--out", page)
    assert f"{run.receipt['dataset']['tokens']:,} tokens" in done.stdout
    return page.read_text()


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


@pytest.fixture(scope="module")
def facts(run):
    out = OutputFolder(run.out)
    shards = [shard["path"] for shard in run.receipt["dataset"]["shards"]]
    usage = read_usage(out, shards, run.receipt["tokenizer"]["vocab_size"], threads=2)
    tokenizer = run.out / "tokenizer"
    return read_facts(out, tokenizer, load_tokenizer(tokenizer), run.receipt, usage)


def test_every_number_from_the_receipt_equals_it(run, page):
    assert [(path, text) for path, text in page.said if text != shown(run.receipt, path)] == []
    paths = {path for path, _ in page.said}
    ledger = run.receipt["ledger"]
    for unit in ("documents", "bytes"):
        reasons = {f"{column}.{reason}" for column in ("filtered", "dead") for reason in ledger[unit][column]}
        assert {f"ledger.{unit}.{name}" for name in {"in", "kept", "empty", "duplicate"} | reasons} <= paths
    assert {"dataset.tokens", "dataset.digest", "tokenizer.digest", "corpus.digest", "digest"} <= paths


def test_every_id_has_the_occurrences_of_the_token_shards(run, page):
    files = [run.out / shard["path"] for shard in run.receipt["dataset"]["shards"]]
    ids = np.concatenate([pq.read_table(file)["token_ids"].combine_chunks().flatten().to_numpy() for file in files])
    counts = np.bincount(ids, minlength=run.receipt["tokenizer"]["vocab_size"])
    assert page.data["vocabulary"]["counts"] == counts.tolist()
    assert sum(page.data["vocabulary"]["counts"]) == run.receipt["dataset"]["tokens"]


def test_bands_are_those_of_the_vocabulary(page):
    columns = page.data["vocabulary"]
    bands, strengths = (
        dict(zip(columns["tokens"], (page.data[name][i] for i in columns[name]), strict=True))
        for name in ("bands", "strengths")
    )
    assert (bands["'std'"], bands["'class'"], bands["<BOS>"]) == ("library", "keywords", "control")
    assert (strengths["'std'"], strengths["<BOS>"]) == ("pinned", "control")
    assert {bands[token] for token in bands if strengths[token] == "reserved"} == {"reserved"}


def test_every_rule_is_explained(page):
    assert {row[4] for row in page.data["decisions"]} <= set(RULES) == set(Rule)


def test_runs_of_a_character_are_shown_by_their_length():
    assert fold_runs("'//-----------'") == "'//-{11}'"
    assert fold_runs("'========'") == "'========'"


def test_projects_add_up_to_the_dataset(run, page):
    assert {row[0] for row in page.data["projects"]} == {"numpy", "arrow"}
    totals = [sum(row[column] for row in page.data["projects"]) for column in (1, 2, 3)]
    assert totals == [run.receipt["dataset"][name] for name in ("documents", "bytes", "tokens")]


def test_every_decision_is_there(run, page):
    rows = pq.read_table(run.out / "tokenizer" / "decisions.parquet").to_pylist()
    assert [[row[name] for name in ("token", "id", "decision", "rule", "hits")] for row in rows] == [
        [row[place] for place in (0, 1, 3, 4, 5)] for row in page.data["decisions"]
    ]


def test_it_fetches_nothing_and_may_not(html, page):
    assert page.fetched == []
    assert "default-src 'none'" in html
    assert not re.search(r"url\(\s*['\"]?http|@import", html)


def test_what_a_run_has_is_shown(page):
    assert page.sections == ["ledger", "vocabulary", "decisions", "compression", "lengths", "text", "speed", "receipt"]


def test_a_run_with_a_given_tokenizer_has_no_counts_to_show(run, cppmill, tmp_path):
    tokenizer = tmp_path / "tokenizer"
    shutil.copytree(run.out / "tokenizer", tokenizer, ignore=shutil.ignore_patterns("decisions*", "findings*", "_*"))
    out, file = tmp_path / "out", tmp_path / "page.html"
    cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", tokenizer)
    cppmill("report", out, "--out", file)
    assert "decisions" not in Page(file.read_text()).sections


def test_decisions_of_a_given_tokenizer_are_said_to_be_of_its_build(facts, html):
    given = render_report(replace(facts, statistics=None, namespaces=None), [], name="given")
    documents = f"{facts.receipt['ledger']['documents']['kept']:,}"
    assert f"from that tokenizer's build ({documents} files" in given
    assert "that tokenizer's build" not in html


def test_a_run_with_an_adopted_tokenizer_has_its_bands(run, cppmill, tmp_path):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(["int main() { return 0; }"] * 9, trainer)
    made.save(str(tmp_path / "tokenizer.json"))
    tokenizer, out, file = tmp_path / "tokenizer", tmp_path / "out", tmp_path / "page.html"
    cppmill("adopt", tmp_path / "tokenizer.json", "--bos", "<|end|>", "--eos", "<|end|>", "--out", tokenizer)
    cppmill("run", run.sources / "numpy", "--out", out, "--tokenizer", tokenizer)
    cppmill("report", out, "--out", file)
    page = Page(file.read_text())
    assert set(page.data["bands"]) == {"control", "learned"}
    assert page.sections == ["ledger", "vocabulary", "compression", "lengths", "text", "speed", "receipt"]


def test_speed_is_shown_where_a_log_of_events_was_kept(copied_run, cppmill, tmp_path):
    shutil.rmtree(copied_run.out / "tokens")
    events = cppmill(*copied_run.command, "--json").stdout
    folder = copied_run.out / ".cache" / "events"
    folder.mkdir(exist_ok=True)
    (folder / "99991231T000000.jsonl").write_text(events)
    cppmill("report", copied_run.out, "--out", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "speed" in Page(html).sections
    assert re.search(r"<td>tokenize</td><td class=\"number\">\d+</td>", html)


def test_the_page_is_bounded_whatever_the_corpus(facts, html):
    many = {f"project-{number:06}": ProjectUsage(1, 10, 3) for number in range(100_000)}
    usage = replace(facts.usage, projects=many, lengths=dict.fromkeys(range(100_000), 1))
    receipt = {**facts.receipt, "files": {f"tokens/part-{number:064}.parquet": "" for number in range(100_000)}}
    receipt["dataset"] = {**receipt["dataset"], "shards": receipt["dataset"]["shards"] * 10_000}
    grown = render_report(replace(facts, usage=usage, receipt=receipt), [], name="many")
    assert len(grown) < len(html) + 100_000
    assert "99,500 smaller projects" in grown


def test_names_of_a_corpus_cannot_control_the_page(facts):
    hostile = "</script><script>alert(1)</script>\x1b\u202e"
    usage = replace(facts.usage, projects={hostile: ProjectUsage(1, 10, 3)})
    html = render_report(replace(facts, usage=usage), [], name=hostile)
    assert "<script>alert" not in html
    assert Page(html).data["projects"][0][0] == hostile


def test_an_empty_dataset_has_a_page(facts):
    usage = replace(facts.usage, ids=facts.usage.ids * 0, projects={}, lengths={}, platforms=facts.usage.platforms * 0)
    empty = {"in": 0, "kept": 0, "empty": 0, "duplicate": 0, "filtered": {}, "dead": {}}
    receipt = {**facts.receipt, "ledger": {"documents": empty, "bytes": empty}}
    receipt["dataset"] = {**receipt["dataset"], "shards": []}
    html = render_report(replace(facts, usage=usage, receipt=receipt), [], name="none")
    assert "ledger" in Page(html).sections
    assert "−0.0" not in html


@pytest.fixture
def compared(run, tmp_path):
    """A comparison of two tokenizers in the form of `compare --json`, on the run's documents."""
    projects = {"numpy": 1000, "arrow": 3000}
    text = {"record": "text", "documents": 2, "bytes": 4000, "identifiers": 9, "projects": projects}
    text["digest"] = run.receipt["corpus"]["digest"]
    figures = {"vocab_size": 65536, "lossy_documents": 0, "megabytes_per_second": 12.5}
    made = [
        {
            "record": "tokenizer",
            "tokenizer": name,
            "bytes_per_token": ratio,
            "projects": {project: {"tokens": 1, "bytes_per_token": ratio} for project in projects},
            **figures,
        }
        for name, ratio in (("ours", 4.25), ("<peer>", 3.875))
    ]
    file = tmp_path / "peers.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in [text, *made]))
    return file


def test_other_tokenizers_are_shown_beside(run, cppmill, compared, tmp_path):
    cppmill("report", run.out, "--out", tmp_path / "page.html", "--compare", compared)
    html = (tmp_path / "page.html").read_text()
    assert "on the documents of this run" in html
    assert "3.875" in html
    assert "&lt;peer&gt;" in html


def test_another_text_is_called_another(facts, compared):
    text, *made = read_comparison(compared)
    assert "another text than this run" in render_report(facts, [{**text, "digest": "0"}, *made], name="run")


TEXT = '{"record": "text", "documents": 1, "bytes": 1, "digest": "", "projects": {"a": 1}}'


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}", "[]", "1", '{"record": "tokenizer"}', '{"record": "text"}', "no JSON"),
        '{"record": "text"}\n{"record": "tokenizer"}',
        TEXT + '\n{"record": "tokenizer"}',
        TEXT
        + '\n{"record": "tokenizer", "tokenizer": "t", "vocab_size": 1, "bytes_per_token": 1, "lossy_documents": 0, '
        '"megabytes_per_second": 1, "projects": {}}',
    ],
)
def test_a_file_that_is_not_a_comparison_is_one_line_of_error(run, cppmill, tmp_path, content):
    file = tmp_path / "peers.jsonl"
    file.write_text(content)
    done = cppmill("report", run.out, "--out", tmp_path / "page.html", "--compare", file, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "compare" in done.stderr


def test_a_page_needs_a_folder_outside_its_run(run, cppmill, tmp_path):
    for page in (tmp_path / "none" / "page.html", run.out / "page.html", tmp_path):
        done = cppmill("report", run.out, "--out", page, check=False)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert not (run.out / "page.html").exists()


def test_only_a_page_of_its_own_is_replaced(run, cppmill, tmp_path):
    page = tmp_path / "page.html"
    for _ in range(2):
        cppmill("report", run.out, "--out", page)
    page.write_text("precious")
    done = cppmill("report", run.out, "--out", page, check=False)
    assert (done.returncode, page.read_text()) == (2, "precious")
    assert "not a page of cppmill" in done.stderr


def test_shards_that_differ_from_the_receipt_are_reported(copied_run, cppmill, tmp_path):
    receipt = copied_run.receipt
    first, second = (copied_run.out / shard["path"] for shard in receipt["dataset"]["shards"][:2])
    shutil.copyfile(first, second)
    done = cppmill("report", copied_run.out, "--out", tmp_path / "page.html", check=False)
    assert done.returncode == 1
    assert "cppmill verify" in done.stderr


@pytest.mark.parametrize("options", [[], ["--shard"]], ids=["page", "rows"])
def test_no_page_shows_a_shard_that_the_receipt_does_not_name(copied_run, cppmill, tmp_path, options):
    """All sums stay: only the platforms of the documents are others."""
    name = copied_run.receipt["dataset"]["shards"][0]["path"]
    path = copied_run.out / name
    rows = pq.read_table(path, partitioning=None)
    place = rows.schema.get_field_index("platform_ids")
    none = pa.array([[]] * len(rows), rows.schema.field(place).type)
    pq.write_table(rows.set_column(place, rows.schema.field(place), none), path)
    shown = [*options, *([name] if options else [])]
    done = cppmill("report", copied_run.out, *shown, "--out", tmp_path / "page.html", check=False)
    assert (done.returncode, (tmp_path / "page.html").exists()) == (1, False)
    assert f"{name}: missing, or not the file that the receipt names" in done.stderr


def test_a_missing_shard_is_one_line_of_error(copied_run, cppmill, tmp_path):
    (copied_run.out / copied_run.receipt["dataset"]["shards"][0]["path"]).unlink()
    done = cppmill("report", copied_run.out, "--out", tmp_path / "page.html", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "missing" in done.stderr


def test_an_edited_receipt_is_not_shown(copied_run, cppmill, tmp_path):
    receipt = copied_run.receipt
    receipt["ledger"]["documents"]["in"] = 999_999
    (copied_run.out / "receipt.json").write_text(json.dumps(receipt))
    done = cppmill("report", copied_run.out, "--out", tmp_path / "page.html", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "it was changed" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_run_whose_name_is_not_utf_8_has_its_page(copied_run, cppmill, html, tmp_path):
    out = copied_run.out.rename(tmp_path / "out\udcff")
    cppmill("report", out, "--out", tmp_path / "page.html")
    assert Page((tmp_path / "page.html").read_text()).data == Page(html).data


def test_a_page_may_have_a_name_that_is_not_utf_8(run, cppmill, tmp_path):
    done = cppmill("report", run.out, "--out", tmp_path / "page\udcff.html")
    assert "page\\udcff.html" in done.stdout


def test_by_default_the_page_is_named_after_the_run():
    assert str(default_page("a/demo/")) == str(default_page("s3://bucket/demo")) == "demo-report.html"


def test_an_unfinished_run_is_one_line_of_error(cppmill, tmp_path):
    done = cppmill("report", tmp_path, "--out", tmp_path.parent / "page.html", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "receipt.json" in done.stderr


@pytest.mark.engines
def test_a_run_on_an_object_store_has_the_same_page(run, html, object_store, cppmill, tmp_path):
    place = f"{new_prefix(object_store)}/{run.out.name}"
    open_url(place)[0].put(f"{run.out}/", place, recursive=True)
    cppmill("report", place, "--out", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == html


def test_a_receipt_that_says_another_number_of_ids_is_refused(copied_run):
    """Its digest is true, so only the tokenizer denies it."""
    rewrite(copied_run.out / "receipt.json", lambda value: value["tokenizer"].update(vocab_size=99_999))
    rewrite(copied_run.out / "receipt.json", seal)
    receipt = read_receipt(OutputFolder(copied_run.out))
    with pytest.raises(IntegrityError, match="it has 12288 ids, the receipt says 99999"):
        count_tokens(OutputFolder(copied_run.out), receipt, threads=1)
    with pytest.raises(IntegrityError, match="it has 12288 ids, the receipt says 99999"):
        open_source(OutputFolder(copied_run.out), SequenceOptions(length=64))


@pytest.mark.parametrize("column", ["in", "duplicate"])
def test_a_receipt_whose_ledger_does_not_balance_is_not_read(column, copied_run):
    rewrite(copied_run.out / "receipt.json", lambda value: value["ledger"]["documents"].update({column: 7}))
    rewrite(copied_run.out / "receipt.json", seal)
    with pytest.raises(IntegrityError, match="it says documents in"):
        read_receipt(OutputFolder(copied_run.out))


@pytest.mark.parametrize("name", ["counts/statistics.json", "tokenizer/findings.md"])
def test_figures_that_are_not_those_of_the_receipt_are_not_shown(name, copied_run, cppmill, tmp_path):
    file = copied_run.out / name
    file.write_bytes(file.read_bytes() + b" ")
    done = cppmill("report", copied_run.out, "--out", tmp_path / "page.html", check=False)
    assert (done.returncode, (tmp_path / "page.html").exists()) == (1, False)
    assert f"{file}: missing, or not the file that the receipt names" in done.stderr


@pytest.mark.parametrize("options", [[], ["--shard"]], ids=["page", "rows"])
def test_a_bit_that_rots_while_size_and_time_stay_is_found(copied_run, cppmill, tmp_path, options):
    name = copied_run.receipt["dataset"]["shards"][0]["path"]
    path = copied_run.out / name
    times, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    shown = [*options, *([name] if options else [])]
    done = cppmill("report", copied_run.out, *shown, "--out", tmp_path / "page.html", check=False)
    assert (done.returncode, f"{name}: missing, or not the file that the receipt names" in done.stderr) == (1, True)
