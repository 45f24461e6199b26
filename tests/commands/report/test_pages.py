"""Pages of what filters drop and of the rows of a file: their numbers are the run's, and nothing in them is obeyed."""

import re
import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

from pipelines.pages import render_page
from pipelines.report.left_out import EXAMPLES, RunFiles, count_left_out, render_left_out
from pipelines.report.shard_rows import render_rows
from schemas.errors import ConfigError, IntegrityError
from schemas.ledger import Ledger
from schemas.printing import printable
from schemas.tables import REJECTS
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder

HOSTILE = "</script><script>alert(1)</script>\x1b[2J\u202e"


@pytest.fixture(scope="module")
def strict(run, sources, cppmill, tmp_path_factory):
    """A run of the same headers with filters, and the tokenizer of the run without."""
    out = tmp_path_factory.mktemp("strict") / "strict"
    filters = ("--max-line-bytes", "100", "--min-unique-line-ratio", "0.5")
    cppmill("run", sources, "--out", out, "--tokenizer", run.out / "tokenizer", *filters)
    return out


def test_what_a_filter_drops_is_shown_with_the_text_that_another_run_kept(run, strict, cppmill, tmp_path):
    page = tmp_path / "page.html"
    said = cppmill("report", strict, "--left-out", "--against", run.out, "--out", page).stdout
    rejects = pd.concat(pq.read_table(file).to_pandas() for file in (strict / "documents").glob("rejects-*"))
    ours = rejects[rejects["column"] == "filtered"]
    ours = ours[ours["reason"] != "extension"]  # which the other run drops too
    assert f"; {len(ours):,} documents left out only in this run, 0 documents left out only in the other" in said
    html = page.read_text()
    for reason, rows in ours.groupby("reason"):
        assert f"<h3>filtered: {reason}</h3>" in html
        table = html.partition(f"<h3>filtered: {reason}</h3>")[2]
        for number in (len(rows), rows["num_bytes"].sum(), rows["num_bytes"].max()):
            assert f'<td class="number">{number:,}</td>' in table
    assert "filtered: extension" not in html
    assert html.count("how it begins") == sum(min(EXAMPLES, len(rows)) for _, rows in ours.groupby("reason"))
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", html)


def test_what_a_run_left_out_is_its_ledger(strict, cppmill, tmp_path):
    page = tmp_path / "page.html"
    cppmill("report", strict, "--left-out", "--out", page)
    ledger = Ledger.from_json(run_files(strict).receipt["ledger"], where="")
    html = page.read_text()
    left_out = ledger.documents.total - ledger.documents.kept
    assert f"<p>{left_out:,} documents, {ledger.num_bytes.total - ledger.num_bytes.kept:,} bytes.</p>" in html
    assert "how it begins" not in html


def test_a_run_of_other_sources_is_refused(strict, other_tokenizer, cppmill):
    done = cppmill("report", strict, "--left-out", "--against", other_tokenizer.parent, check=False)
    assert (done.returncode, "give a run of the same sources" in done.stderr) == (2, True)


def test_rejects_that_are_not_the_ledger_are_refused(strict):
    files = run_files(strict)
    files.receipt["ledger"]["documents"]["filtered"]["long_lines"] -= 1
    files.receipt["ledger"]["documents"]["kept"] += 1
    with pytest.raises(IntegrityError, match="the rejects have documents .* the receipt says .* `cppmill verify`"):
        render_left_out(files, None, names=["strict"])


def run_files(out):
    folder = OutputFolder(out)
    return RunFiles(folder, read_receipt(folder))


def test_the_examples_do_not_depend_on_the_order_of_rows():
    rows = [("p", f"{number}.h", number, "filtered", "secret", "") for number in range(100)]
    frame = pd.DataFrame(rows, columns=REJECTS.names)
    whole, parts = count_left_out([frame]), count_left_out([frame[50:], frame[:50]])
    assert whole == parts
    dropped = whole["filtered: secret"]
    assert (dropped.documents, dropped.num_bytes, dropped.largest, len(dropped.examples)) == (100, 4950, 99, EXAMPLES)


def test_rows_of_a_token_shard_show_their_tokens(run, cppmill, tmp_path):
    shard = min((run.out / "tokens").glob("part-*.parquet"))
    row = pq.read_table(shard).slice(1, 1).to_pylist()[0]
    page = tmp_path / "page.html"
    name = f"tokens/{shard.name}"
    said = cppmill("report", run.out, "--shard", name, "--first", 1, "--rows", 1, "--out", page).stdout
    assert f"; rows 1 to 1 of {pq.read_metadata(shard).num_rows:,}" in said
    html = page.read_text()
    shown = [int(number) for number in re.findall(r'<i class="\w+(?: atomic)?" title="(\d+)">', html)]
    assert shown == row["token_ids"][: len(shown)]
    assert len(shown) == min(len(row["token_ids"]), 1000)
    assert f'<td class="name">{row["doc_id"]}</td>' in html


def test_nothing_of_a_row_is_obeyed(tmp_path):
    table = pd.DataFrame({"path": [HOSTILE], "content": [HOSTILE.encode()], "other": [[HOSTILE]]})
    table.to_parquet(tmp_path / "rows.parquet")
    html, _ = render_rows(OutputFolder(tmp_path), "rows.parquet", first=0, rows=5, palette=None)
    assert "<script>alert" not in html
    assert not set("\x1b\u202e") & set(html)
    assert html.count("&lt;script&gt;alert(1)") == 4


@pytest.mark.parametrize(
    ("name", "first", "message"),
    [
        ("receipt.json", 0, "no such Parquet file"),
        ("../terms.parquet", 0, "no such Parquet file"),
        ("terms.parquet", 10**6, "rows, counted from 0"),
    ],
)
def test_a_file_or_row_that_is_not_there_is_one_line(run, tmp_path, name, first, message):
    for folder in (tmp_path, tmp_path / "run"):
        folder.mkdir(exist_ok=True)
        shutil.copy(run.out / "counts" / "terms.parquet", folder)
    with pytest.raises(ConfigError, match=message):
        render_rows(OutputFolder(tmp_path / "run"), name, first=first, rows=1, palette=None)


@pytest.mark.parametrize(
    "options",
    [("--left-out", "--shard", "x.parquet"), ("--against", "."), ("--rows", 3), ("--left-out", "--compare", "x")],
    ids=lambda options: options[0],
)
def test_options_that_do_not_go_together_are_refused(run, cppmill, options):
    done = cppmill("report", run.out, *options, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert options[0] in done.stderr


def test_names_on_a_page_neither_turn_the_direction_of_writing_nor_hide_anything():
    hostile = "a\u202e\x1b]0;b\x07<b>\u2066.h"
    html = render_page("page.html.j2", title=hostile)
    assert "a\\u202e\\x1b]0;b\\x07&lt;b&gt;\\u2066.h" in html
    assert printable(html) == html
