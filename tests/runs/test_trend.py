"""The trend of a store: its numbers are those of the receipts and shards, and it outlives the versions."""

from __future__ import annotations

import json
import os
import re
import shutil
from hashlib import sha256
from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.console.progress import Reporters
from pipelines.report.trend import render_trend
from pipelines.versions.retokenize import Request, retokenize
from schemas.digests import canonical_json, sha256_json
from schemas.errors import IntegrityError
from schemas.tables import PROJECT_SUMS
from transforms.records.movers import COMPARED_VERSIONS, MOVERS, find_movers, pick
from transforms.records.trend import SHOWN_VERSIONS, TREND_FORMAT, VersionFacts, find_sums, read_trend, record_facts
from transforms.records.versions import CHANGES_FORM, CHANGES_FORMAT, Versions
from transforms.storage.folder import OutputFolder
from transforms.tokens.usage import read_usage

NAMES = ["v000001", "v000002", "v000003"]


class Page(HTMLParser):
    """The text of each table of a page by rows, its sections, and everything that it would fetch or execute."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.sections, self.active = [], [], []
        self._cell = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        links = [names[name] for name in ("src", "href", "action", "srcset") if name in names]
        self.active += [link for link in links if not link.startswith(("data:", "#"))]
        self.active += [tag] * (tag == "script" or any(name.startswith("on") for name in names))
        if tag == "section":
            self.sections.append(names["id"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_data(self, text):
        if self.tables and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += text.strip("\n")


def again(sources, place, *, keep=2, **flags):
    given = {"SOURCE": (str(sources),), "--store": str(place), **flags}
    return retokenize(Request(file=None, flags=given, keep=keep), Reporters())


@pytest.fixture(scope="session")
def store(run, sources, other_tokenizer, prepared):
    """A store of three versions, the first of them removed: a project came and one went, then another tokenizer.

    `NAME.json` beside it are the receipts of all three.
    """

    def make(folder):
        own, place = folder / "sources", folder / "store"
        shutil.copytree(sources, own)
        options = {"--tokenizer": str(run.out / "tokenizer"), "--unit-bytes": str(1 << 17)}
        for number, change in enumerate((None, change_projects, None)):
            if change:
                change(own)
            if number == 2:
                options = {"--tokenizer": str(other_tokenizer)}
            made = again(own, place, **(options if number != 1 else {}))
            shutil.copyfile(f"{made.place}/receipt.json", folder / f"{made.version}.json")

    return prepared("trend", make) / "store"


def change_projects(sources):
    """Add the project `extra`, remove `arrow`."""
    shutil.move(sources / "arrow", sources / "extra")
    for file in (sources / "extra").rglob("*.h"):
        file.write_text(f"// extra\n{file.read_text()}")


@pytest.fixture
def copied(store, tmp_path):
    """A copy of the store, which a test may change."""
    return shutil.copytree(store, tmp_path / "store", symlinks=True)


@pytest.fixture(scope="module")
def records(store, cppmill):
    """What `changes --trend --json` prints."""
    return [json.loads(line) for line in cppmill("changes", store, "--trend", "--json").stdout.splitlines()]


@pytest.fixture(scope="module")
def page(store, cppmill, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "page.html"
    said = cppmill("report", store, "--out", file).stdout
    assert "; 3 versions, " in said
    return Page(file.read_text())


def receipt_of(store, name):
    return json.loads((store.parent / f"{name}.json").read_bytes())


def test_every_version_has_the_numbers_of_its_receipt_also_when_it_was_removed(store, records):
    versions = [record for record in records if record["record"] == "version"]
    assert [(one["version"], one["is_kept"], one["is_current"]) for one in versions] == [
        ("v000001", False, False),
        ("v000002", True, False),
        ("v000003", True, True),
    ]
    for one in versions:
        receipt = receipt_of(store, one["version"])
        dataset = receipt["dataset"]
        assert [one[name] for name in ("documents", "bytes", "tokens")] == [
            dataset[name] for name in ("documents", "bytes", "tokens")
        ]
        assert one["bytes_per_token"] == dataset["bytes"] / dataset["tokens"]
        assert (one["ledger"], one["receipt"]) == (receipt["ledger"], receipt["digest"])
        assert one["tokenizer"] == receipt["tokenizer"]["digest"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one["time"])


def test_projects_that_came_and_went_and_another_tokenizer_are_told(records):
    versions = [record for record in records if record["record"] == "version"]
    assert [one["is_other_tokenizer"] for one in versions] == [False, False, True]
    nothing = {"number": 0, "named": []}
    assert [one["projects"] for one in versions] == [
        {"number": 2, "added": None, "removed": None},
        {"number": 2, "added": {"number": 1, "named": ["extra"]}, "removed": {"number": 1, "named": ["arrow"]}},
        {"number": 2, "added": nothing, "removed": nothing},
    ]


def test_what_is_recorded_of_projects_is_what_the_token_shards_hold(store):
    for name in NAMES[1:]:
        receipt = receipt_of(store, name)
        shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
        out = OutputFolder(store / "versions" / name)
        usage = read_usage(out, shards, receipt["tokenizer"]["vocab_size"], threads=1)
        assert find_sums(Versions(store), name).to_pylist() == [
            {"project": project, "documents": one.documents, "num_bytes": one.num_bytes, "num_tokens": one.tokens}
            for project, one in sorted(usage.projects.items())
        ]


def test_the_projects_that_moved_are_those_of_the_first_and_the_last_version(store, records):
    [mover] = [record for record in records if record["record"] == "project"]
    sums = {name: {row["project"]: row for row in find_sums(Versions(store), name).to_pylist()} for name in NAMES}
    assert mover["project"] == "numpy"
    ratios = {name: sums[name]["numpy"]["num_bytes"] / sums[name]["numpy"]["num_tokens"] for name in NAMES}
    assert mover["bytes_per_token"] == ratios
    last = sums["v000003"]["numpy"]
    assert mover["tokens"] == round(last["num_tokens"] - last["num_bytes"] / ratios["v000001"])


def test_the_page_has_a_row_per_version_and_needs_no_script(store, page):
    assert page.active == []
    assert page.sections == ["trend", "versions", "ledger", "projects", "drift", "movers"]
    versions, ledger, projects, _, movers = page.tables
    assert [row[0] for row in versions[1:]] == ["v000003current", "v000002kept", "v000001removed"]
    for row in versions[1:]:
        dataset = receipt_of(store, row[0][:7])["dataset"]
        assert row[2:5] == [f"{dataset[name]:,}" for name in ("documents", "bytes", "tokens")]
    assert [("another" in row[-1]) for row in versions[1:]] == [True, False, False]
    kept = ledger[0].index("kept")
    assert [row[kept] for row in ledger[1:]] == [
        f"{receipt_of(store, name)['ledger']['documents']['kept']:,}" for name in reversed(NAMES)
    ]
    assert projects[2] == ["v000002", "2", "extra", "arrow"]
    assert movers[1][0] == "numpy"


@pytest.mark.engines
@pytest.mark.parametrize("width", [400, 768, 1400])
def test_the_page_loads_in_silence_alone_and_fits(store, browser, cppmill, tmp_path, width):
    cppmill("report", store, "--out", tmp_path / "page.html")
    page, said, asked = browser.new_page(viewport={"width": width, "height": 900}), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "page.html").as_uri())
    assert (said, [url for url in asked if not url.startswith("data:")]) == ([], [page.url])
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cut = "[...document.querySelectorAll('.scroll, .card')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert page.evaluate(cut) == 0
    page.close()


def test_no_token_shard_and_no_receipt_is_read(store, copied, records, page, cppmill, tmp_path):
    for name in NAMES[1:]:
        for path in (copied / "versions" / name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = [json.loads(line) for line in cppmill("changes", copied, "--trend", "--json").stdout.splitlines()]
    assert found == records
    cppmill("report", copied, "--out", tmp_path / "page.html")
    assert Page((tmp_path / "page.html").read_text()).tables == page.tables


def forge(place, change):
    """Change a record, and make its digest true again."""
    record = json.loads(place.read_bytes())
    del record["digest"]
    change(record)
    place.write_bytes(canonical_json({**record, "digest": sha256_json(record)}))


def write_sums(place, data):
    """Replace the sums of projects beside a record, and make that true again."""
    place.with_suffix(".parquet").write_bytes(data)
    forge(place, lambda record: record.update(sums=sha256(data).hexdigest()))


FORGED = {
    "trend tokens": ("trend", lambda record: record.update(tokens=1), "its tokens is 1"),
    "trend ledger": ("trend", lambda record: record["ledger"]["documents"].update(empty=9), "its ledger is"),
    "drift receipt": ("drift", lambda record: record.update(receipt="0" * 64), f"its receipt is {'0' * 64}"),
    "changes documents": ("changes", lambda record: record["documents"].update(added=7), "the two versions give"),
    "changes ids": ("changes", lambda record: record["ids"].update(moved=0), "the two versions give"),
    "changes previous": ("changes", lambda record: record.update(previous="x"), "which is no version before v000003"),
    "changes of a later one": (
        "changes",
        lambda record: record.update(previous="v000004"),
        "no version before v000003",
    ),
    "trend previous": (
        "trend",
        lambda record: record.update(previous="v000001"),
        "the record of changes says 'v000002'",
    ),
    "drift previous": ("drift", lambda record: record.update(previous=None), "the record of changes says 'v000002'"),
    "trend tokenizer": ("trend", lambda record: record.update(is_other_tokenizer=False), "its is_other_tokenizer is"),
    "trend number": ("trend", lambda record: record["projects"].update(number=99), "of projects its number is 99"),
    "trend projects": (
        "trend",
        lambda record: record["projects"].update(added={"number": 1, "named": ["x"]}),
        "of projects its added is",
    ),
    "trend key": ("trend", lambda record: record.update(author="x"), "it has the key 'author'"),
    "changes key": ("changes", lambda record: record.update(author="x"), "it has the key 'author'"),
    "drift key": ("drift", lambda record: record.update(author="x"), "it has the key 'author'"),
    "changes form": ("changes", lambda record: record.update(bytes=5), "not laid out as a record"),
    "changes without a previous": ("changes", lambda record: record.pop("previous"), "previous is missing"),
    "trend without a time": ("trend", lambda record: record.pop("time"), "time is missing"),
    "trend without its version": ("trend", lambda record: record.pop("version"), "version is missing"),
    "trend without projects": ("trend", lambda record: record["projects"].pop("added"), "projects.added is missing"),
    "drift without ids": ("drift", lambda record: record.pop("ids"), "ids is missing"),
    "drift of text": ("drift", lambda record: record.update(new="x"), "new is of another type than dict"),
}


@pytest.mark.parametrize("name", FORGED)
def test_verify_compares_the_records_of_a_version_with_it(copied, cppmill, name):
    folder, change, message = FORGED[name]
    cppmill("verify", copied)
    forge(copied / folder / "v000003.json", change)
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, message in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["shards"].update(after=99), "its shards is 99"),
        (lambda record: record["ids"]["largest"].update(after=1), "its largest id is 1"),
        (lambda record: record["documents"].update(same=10**6), "its documents added, changed and the same is 1000"),
    ],
)
def test_what_changes_say_of_a_version_is_compared_although_the_one_before_is_gone(copied, cppmill, change, message):
    cppmill("verify", copied / "versions/v000002")
    forge(copied / "changes/v000002.json", change)
    done = cppmill("verify", copied / "versions/v000002", check=False)
    assert (done.returncode, message in done.stdout) == (1, True), done.stdout


def test_verify_compares_the_sums_of_projects_with_the_shards(copied, cppmill):
    write_sums(copied / "trend/v000003.json", (copied / "trend/v000001.parquet").read_bytes())
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, "not the sums of the projects of" in done.stdout) == (1, True)


@pytest.mark.parametrize("folder", ["changes", "trend", "drift"])
def test_a_record_with_a_key_twice_or_behind_a_link_is_found(copied, cppmill, folder):
    path = copied / folder / "v000003.json"
    data = path.read_bytes()
    path.write_bytes(b'{"documents":1,' + data[1:])
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, "it is not canonical JSON" in done.stdout) == (1, True)
    path.unlink()
    (copied / "elsewhere.json").write_bytes(data)
    path.symlink_to(copied / "elsewhere.json")
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, "v000003.json: not a file but a link" in done.stdout) == (1, True)


def test_false_statistics_and_other_types_of_the_sums_of_projects_are_found(copied, cppmill):
    path, record, other = copied / "trend/v000003.parquet", copied / "trend/v000003.json", copied / "other.parquet"
    data, rows = path.read_bytes(), pq.read_table(path)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    least = min(rows.column("project").to_pylist()).encode()
    write_sums(record, data[:start] + data[start:].replace(least, least[:-1] + b"~"))
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, "its statistics are" in done.stdout) == (1, True)
    pq.write_table(rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema])), other)
    write_sums(record, other.read_bytes())
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, "its columns are of other types" in done.stdout) == (1, True)


def test_sums_of_projects_with_another_column_are_found(copied, cppmill):
    rows, other = pq.read_table(copied / "trend/v000003.parquet"), copied / "other.parquet"
    pq.write_table(rows.append_column("author", pa.array(["x"] * len(rows))), other)
    write_sums(copied / "trend/v000003.json", other.read_bytes())
    done = cppmill("verify", copied, check=False)
    assert (done.returncode, "its columns are project, documents" in done.stdout) == (1, True)


@pytest.mark.parametrize("folder", ["changes", "trend", "drift"])
def test_the_record_of_another_version_is_refused(copied, folder):
    shutil.copyfile(copied / folder / "v000002.json", copied / folder / "v000003.json")
    with pytest.raises(IntegrityError, match=r"v000003.json: it is of v000002; remove the file"):
        Versions(str(copied)).read(folder, "v000003", f"cppmill-{folder}-1", {})


def test_the_tables_of_text_say_the_same(store, cppmill):
    said = cppmill("changes", store, "--trend").stdout
    for name in NAMES:
        receipt = receipt_of(store, name)
        assert re.search(
            rf"^{name} .* {receipt['dataset']['tokens']:,} .*{receipt['tokenizer']['digest'][:12]}", said, re.M
        )
    assert "* another tokenizer than the version before" in said
    assert "v000002  added    extra\nv000002  removed  arrow\n" in said
    assert re.search(r"^numpy +\d\.\d{3} +\d\.\d{3} +[+-]", said, re.M)


def test_without_a_trend_the_changes_of_the_current_version_are_printed(store, cppmill):
    changes = Versions(str(store)).read("changes", "v000003", CHANGES_FORMAT, CHANGES_FORM)
    assert json.loads(cppmill("changes", store, "--json").stdout) == changes
    assert json.loads((store / "changes/v000003.json").read_bytes()) == {**changes, "digest": sha256_json(changes)}
    said = cppmill("changes", store).stdout
    assert said.startswith("v000003: after v000002\n")
    assert f"{changes['ids']['moved']:,} moved" in said


def test_a_store_without_records_tells_what_receipts_and_changes_say(store, copied, records, cppmill):
    shutil.rmtree(copied / "trend")
    found = [json.loads(line) for line in cppmill("changes", copied, "--trend", "--json").stdout.splitlines()]
    unknown = {"time": None, "projects": None}
    assert found == [
        {**record, **unknown, **({} if record["is_kept"] else {"ledger": None})}
        for record in records
        if record["record"] == "version"
    ]


def test_the_next_version_of_a_store_without_records_records_the_one_before_too(copied, sources, tmp_path):
    shutil.rmtree(copied / "trend")
    shutil.copytree(sources / "numpy", tmp_path / "numpy")
    assert again(tmp_path / "numpy", copied).version == "v000004"
    _, _, third, last = read_trend(str(copied)).versions
    assert third.projects == {"number": 2, "added": None, "removed": None}
    assert third.time is not None
    assert last.projects["removed"] == {"number": 1, "named": ["extra"]}


def test_a_run_that_becomes_the_first_version_is_in_the_trend(run, tmp_path):
    place = tmp_path / "store"
    shutil.copytree(run.out, place / "versions/v000001", copy_function=shutil.copy2)
    (place / "current").symlink_to("versions/v000001")
    shutil.copytree(run.sources / "numpy", tmp_path / "sources/numpy")
    again(tmp_path / "sources", place)
    first, second = read_trend(str(place)).versions
    assert (first.ledger, first.projects["number"]) == (run.receipt["ledger"], 2)
    assert second.projects["removed"] == {"number": 1, "named": ["arrow"]}


def fill(place, number, name="project"):
    """Write the records of many versions after the last one of a store, with other bytes per token in the first."""
    versions = Versions(place)
    template = read_trend(str(place)).versions[-1].to_json()
    names = [f"{name}-{one:02}" for one in range(2 * MOVERS)]
    template["is_other_tokenizer"] = False
    template["projects"] = {"number": 500, **dict.fromkeys(("added", "removed"), {"number": 500, "named": names[:20]})}
    for one in range(number):
        facts = VersionFacts.from_json({**template, "version": f"v{one + 4:06}"})
        if one < 2:
            columns = [names, *([value] * len(names) for value in (1, 900 + 90 * one, 300))]
            record_facts(versions, facts, pa.table(columns, schema=PROJECT_SUMS))
        else:
            record = {"format": TREND_FORMAT, **facts.to_json()}
            (place / f"trend/{facts.version}.json").write_bytes(canonical_json(record))
            os.link(place / "trend/v000005.parquet", place / f"trend/{facts.version}.parquet")


def test_the_page_is_bounded_whatever_the_number_of_versions_and_projects(copied):
    fill(copied, SHOWN_VERSIONS)
    trend = read_trend(str(copied))
    assert (len(trend.versions), trend.older) == (SHOWN_VERSIONS, 3)
    movers = find_movers(trend)
    assert (len(movers), len(movers[0].ratios)) == (MOVERS, COMPARED_VERSIONS)
    html = render_trend(trend, movers, name="many")
    assert len(html) < 1_000_000
    assert "3 older ones are not" in html
    assert "and 495 more" in html


def test_names_of_a_corpus_cannot_control_the_page(copied):
    fill(copied, 2, name="</td><script>alert(1)</script>\x1b\u202e")
    html = render_trend(read_trend(str(copied)), [], name="</title><script>")
    assert Page(html).active == []
    assert not {"\x1b", "\u202e"} & set(html)


def test_a_record_of_another_format_is_one_line_of_error(copied, cppmill):
    file = copied / "trend/v000002.json"
    file.write_bytes(canonical_json({**json.loads(file.read_bytes()), "format": "cppmill-trend-9"}))
    done = cppmill("changes", copied, "--trend", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{file}: not a record of format cppmill-trend-1" in done.stderr


def damage(file, old, new):
    data = file.read_bytes()
    assert old in data
    file.unlink()
    file.write_bytes(data.replace(old, new, 1))


def test_a_damaged_record_is_one_line_of_error(copied, cppmill):
    file = copied / "trend/v000002.json"
    damage(file, b'"documents"', b'"documentr"')
    done = cppmill("changes", copied, "--trend", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{file}: its digest is" in done.stderr


@pytest.mark.parametrize(
    ("folder", "change", "message"),
    [
        ("trend", lambda record: record["ledger"]["documents"].pop("in"), "ledger.documents.in is missing"),
        ("trend", lambda record: record["projects"].update(removed={}), "projects.removed.number is missing"),
        ("drift", lambda record: record["after"].update(rare_share="x"), "after.rare_share is of another type"),
    ],
)
def test_a_record_of_another_form_is_one_line_of_error(copied, cppmill, tmp_path, folder, change, message):
    file = copied / folder / "v000002.json"
    forge(file, change)
    done = cppmill("report", copied, "--out", tmp_path / "page.html", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{file}: not laid out as a record (ValueError: {message}" in done.stderr


def test_damaged_sums_are_named(copied):
    file = copied / "trend/v000002.parquet"
    start = len(file.read_bytes()) // 2
    damage(file, file.read_bytes()[start:], b"PAR1")
    with pytest.raises(IntegrityError, match=re.escape(f"{file}: cannot be read")):
        find_sums(Versions(str(copied)), "v000002")


def test_page_headers_of_sums_that_are_damaged_are_named(copied):
    file = copied / "trend/v000002.parquet"
    damage(file, file.read_bytes()[4:12], b"\xff" * 8)
    with pytest.raises(IntegrityError, match=re.escape(f"{file}: cannot be read")):
        find_sums(Versions(str(copied)), "v000002")


def test_sums_in_which_a_bit_flipped_are_not_read(copied, cppmill):
    file = copied / "trend/v000002.parquet"
    damage(file, b"numpy", b"oumpy")
    with pytest.raises(IntegrityError, match=re.escape(f"{file}: cannot be read (its SHA-256 is ")):
        find_sums(Versions(str(copied)), "v000002")
    done = cppmill("changes", copied, "--trend", check=False)
    assert (done.returncode, "the record beside it says" in done.stderr) == (1, True)


def test_sums_beside_a_record_of_an_older_version_are_read(copied):
    before = find_sums(Versions(str(copied)), "v000002")
    forge(copied / "trend/v000002.json", lambda record: record.pop("sums"))
    assert find_sums(Versions(str(copied)), "v000002") == before


def test_a_comparison_is_of_one_run(store, cppmill, tmp_path):
    done = cppmill("report", store, "--out", tmp_path / "page.html", "--compare", "peers.jsonl", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is a store of versions" in done.stderr


@pytest.mark.parametrize("options", [[], ["--trend"]])
def test_a_folder_that_is_no_store_is_one_line_of_error(run, cppmill, options):
    done = cppmill("changes", run.out, *options, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "give the --store of `cppmill retokenize`" in done.stderr


def test_what_is_picked_of_many_has_both_ends():
    names = [str(number) for number in range(100)]
    found = pick(names, 12)
    assert (found[0], found[-1], len(found)) == ("0", "99", 12)
