"""The commands `show` and `explain` on a header of a finished run."""

from __future__ import annotations

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from pipelines.tokenizers.show import page_of_tokens, shown_text


class Page(HTMLParser):
    """The tokens of a page, the ids that they carry, and everything that it would fetch."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.texts, self.fetched, self._inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        self.fetched += [value for name, value in names.items() if name in ("src", "href") and value != "data:,"]
        self._inside = tag == "i"
        if self._inside:
            self.ids.append(int(names["data-id"]))
            self.texts.append("")

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.texts[-1] += data


@pytest.fixture(scope="module")
def header():
    return Path(np.get_include()) / "numpy" / "ndarrayobject.h"


@pytest.fixture(scope="module")
def tokenizer(run):
    return run.out / "tokenizer"


def test_an_output_stream_that_is_full_is_named(processes, header, tokenizer):
    with Path("/dev/full").open("w") as full:
        command = ("show", "--tokenizer", tokenizer, header)
        process = processes.command(*command, stdout=full.fileno(), stderr=subprocess.PIPE)
        _, errors = process.communicate(60)
    assert process.returncode == 1
    assert errors.startswith("error: the output stream: no space left")


def test_show_prints_the_file_with_a_bar_after_each_token(cppmill, header, tokenizer):
    ids = json.loads(cppmill("encode", "--tokenizer", tokenizer, header).stdout)
    shown = cppmill("show", "--tokenizer", tokenizer, header).stdout
    text, _, legend = shown.rpartition(f"{len(ids):,} tokens, ")
    assert text.count("│") == len(ids)
    assert text.replace("│", "").replace("⏎\n", "\n").removesuffix("\n") == header.read_text()
    assert f"{header.stat().st_size:,} bytes" in legend
    assert "learned" in legend


def test_show_prints_ids_where_they_are_asked_for(cppmill, header, tokenizer):
    ids = json.loads(cppmill("encode", "--tokenizer", tokenizer, header).stdout)
    shown = cppmill("show", "--tokenizer", tokenizer, header, "--ids").stdout
    assert [int(part.split("⟩")[0]) for part in shown.split("⟨")[1:]] == ids


def test_the_page_has_every_token_and_fetches_nothing(cppmill, header, tokenizer, tmp_path):
    page = tmp_path / "page.html"
    cppmill("show", "--tokenizer", tokenizer, header, "--html", page)
    ids = json.loads(cppmill("encode", "--tokenizer", tokenizer, header).stdout)
    found = Page(page.read_text())
    assert found.ids == ids
    assert "".join(found.texts).replace("⏎\n", "\n").replace("⇥   ", "\t") == header.read_text()
    assert found.fetched == []


def test_a_file_cannot_control_a_terminal_or_a_page(cppmill, tokenizer, tmp_path):
    hostile = tmp_path / "hostile.cpp"
    hostile.write_bytes(b"\x1b]0;title\x07\r\x00</pre></i><script>alert(1)</script>\xff")
    shown = cppmill("show", "--tokenizer", tokenizer, hostile).stdout
    assert not {"\x1b", "\x07", "\r", "\x00"} & set(shown)
    page = tmp_path / "page.html"
    cppmill("show", "--tokenizer", tokenizer, hostile, "--html", page)
    assert "<script>alert" not in page.read_text()


def test_characters_that_are_not_printed_leave_a_mark():
    assert shown_text("a\tß\u202e\u2028\ufeff".encode() + b"\x7f\n") == "a⇥   ß\\u202e\\u2028\\ufeff\\x7f⏎\n"


def test_explain_names_the_merges_of_each_token(cppmill, tokenizer):
    done = cppmill("explain", "--tokenizer", tokenizer, "--json", "std::vector<int> v;")
    tokens = [json.loads(line) for line in done.stdout.splitlines()]
    assert [token["token"] for token in tokens][:3] == ["'std'", "'::'", "'vector'"]
    assert [merge["phase"] for merge in tokens[2]["merges"]] == ["seed"] * 5
    lines = cppmill("explain", "--tokenizer", tokenizer, "std::vector<int> v;").stdout.splitlines()
    assert lines[0].split() == ["'std'", "id", str(tokens[0]["id"]), "pinned,", "library"]
    assert len(lines) == len(tokens) + sum(len(token["merges"]) for token in tokens)


def test_explain_takes_an_argument_that_is_not_utf_8(cppmill, tokenizer):
    done = cppmill("explain", "--tokenizer", tokenizer, "x\udcff")
    assert r"'\xff'" in done.stdout


def test_explain_takes_a_text_that_looks_like_a_url_with_a_password_as_it_is(cppmill, tokenizer):
    done = cppmill("explain", "--tokenizer", tokenizer, "https://a b@c/")
    assert "%" not in done.stdout


def test_a_folder_without_a_tokenizer_is_one_line_of_error(cppmill, header, tmp_path):
    done = cppmill("show", "--tokenizer", tmp_path, header, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_page_that_cannot_be_written_is_one_line_of_error(cppmill, header, tokenizer, tmp_path):
    done = cppmill("show", "--tokenizer", tokenizer, header, "--html", tmp_path / "none" / "page.html", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "none/page.html" in done.stderr


def test_the_size_of_a_page_is_printed(header, tokenizer, tmp_path, monkeypatch):
    told = page_of_tokens(header.read_bytes(), tokenizer, tmp_path / "page.html", title="header")
    assert re.fullmatch(r".*page\.html: \d\.\d MB; [\d,]+ tokens", told)
    monkeypatch.setattr("pipelines.tokenizers.show._SLOW_PAGE_BYTES", 1000)
    assert "slow to open" in page_of_tokens(header.read_bytes(), tokenizer, tmp_path / "page.html", title="header")


def test_a_file_whose_name_is_not_utf_8_has_a_page(cppmill, tokenizer, tmp_path):
    (tmp_path / "a\udcff.cpp").write_text("int x;")
    cppmill("show", "--tokenizer", tokenizer, tmp_path / "a\udcff.cpp", "--html", tmp_path / "page.html")
    assert "a\\udcff.cpp" in (tmp_path / "page.html").read_text()


def test_a_page_does_not_replace_the_file_that_it_shows(run, cppmill, tmp_path):
    source = tmp_path / "a.cpp"
    source.write_text("int a;")
    for name in ("a.cpp", "./a.cpp"):
        done = cppmill("show", "--tokenizer", run.out / "tokenizer", source, "--html", tmp_path / name, check=False)
        assert (done.returncode, "a.cpp: it exists, and is not a page of cppmill" in done.stderr) == (2, True)
    assert source.read_text() == "int a;"


def test_byte_tables_do_not_replace_their_tokenizer(run, cppmill, tmp_path):
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_bytes((run.out / "tokenizer/tokenizer.json").read_bytes())
    done = cppmill("byte-tables", "--tokenizer", tokenizer, "--out", tokenizer, check=False)
    assert (done.returncode, "it is the tokenizer; name another file" in done.stderr) == (2, True)
    assert tokenizer.read_bytes() == (run.out / "tokenizer/tokenizer.json").read_bytes()
