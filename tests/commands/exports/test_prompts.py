"""The prompts that the pages show, for fill in the middle, begin as the rows of real sequences do."""

import re
import textwrap
from pathlib import Path

import cppmill_core
import pyarrow.parquet as pq
import pytest
import transformers
from cppmill_core import Control

LENGTH = 8192


@pytest.fixture(scope="module")
def rearranged(run, cppmill, tmp_path_factory):
    """The ids of rearranged documents up to the middle, with the text before and after it."""
    out = tmp_path_factory.mktemp("prompts") / "out"
    cppmill("sequences", run.out, "--out", out, "--length", LENGTH, "--fim", "1", "--fim-spm", "0")
    texts = {}
    for path in (run.out / "documents").glob("part-*"):
        texts |= {row["doc_id"]: row["content"] for row in pq.read_table(path).to_pylist()}
    middle = cppmill_core.Tokenizer.from_dir(run.out / "tokenizer").control_id("FIM_MIDDLE")
    found = []
    for row in (row for path in out.rglob("part-*.parquet") for row in pq.read_table(path).to_pylist()):
        columns = ("doc_ids", "starts", "first_tokens", "fim", "fim_starts", "fim_ends")
        for place, (name, start, first, fim, *cut) in enumerate(zip(*(row[name] for name in columns), strict=True)):
            ids = row["token_ids"][start : [*row["starts"], row["num_tokens"]][place + 1]]
            if fim and not first and len(ids) < LENGTH - 100:  # else a part of the document is in another sequence
                parts = texts[name][: cut[0]], texts[name][cut[1] :]
                found.append((ids[: ids.index(middle) + 1], *parts))
    assert len(found) > 20
    return found


def shown(page: Path, begin: str, end: str) -> str:
    """Return the lines of a page from one that begins so to one that ends so."""
    (found,) = re.findall(rf"^ +{begin}.*?{end}$", page.read_text(), re.M | re.S)
    return textwrap.dedent(found)


def test_the_prompt_of_the_readme_is_what_the_rows_have_before_the_middle(rearranged, run, repository):
    code = shown(repository / "README.md", r"prompt = tokenizer\.encode_parts\(", r"\n    \)")
    tokenizer = cppmill_core.Tokenizer.from_dir(run.out / "tokenizer")
    for ids, before, after in rearranged:
        names = {"tokenizer": tokenizer, "Control": Control, "before": before, "after": after}
        exec(code, names)
        assert names["prompt"].to_pylist() == ids


@pytest.mark.parametrize("template", ["none", "bos", "bos-eos"])
def test_the_prompt_of_transformers_is_the_same_with_any_template(
    template, rearranged, run, cppmill, repository, tmp_path
):
    code = shown(repository / "docs" / "how-to" / "models" / "serving.md", "prompt = f", r'\["input_ids"\]')
    folder = run.out / "tokenizer"
    if template != "none":
        folder = tmp_path / template
        cppmill("adopt", run.out / "tokenizer", "--out", folder, "--hf-template", template)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    valid = [(ids, *map(str, parts)) for ids, *parts in decoded(rearranged)]
    assert len(valid) > 20
    for ids, before, after in valid:
        names = {"tokenizer": tokenizer, "before": before, "after": after}
        exec(code, names)
        assert names["ids"] == ids


def decoded(rows):
    """Yield the rows whose texts are UTF-8, with the texts as str."""
    for ids, *parts in rows:
        try:
            yield ids, *(part.decode() for part in parts)
        except UnicodeDecodeError:
            continue
