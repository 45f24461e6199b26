"""Encoders that take a vocabulary are compared, each held to the ids of `tokenizers`; equality names what differs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from benches.agreement.equality import app
from benches.lib.corpus import Corpus, make_corpus, write_sample
from benches.lib.encoders import Vocabulary, make_cl100k
from benches.lib.trainers import read_contents
from benches.speed.adversarial import hard_inputs
from benches.speed.encoding import Peer, SampleText, find_peers, measure_counting, measure_peers
from benches.speed.tokenizing import measure_tokenizing, write_texts
from pipelines.console.progress import MEGABYTE, Reporters

pytestmark = pytest.mark.engines
CL100K_PEERS = ["cppmill", "gigatoken", "fastokens", "snaptokens", "tiktoken", "tokenizers"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    out = tmp_path_factory.mktemp("run")
    return make_corpus(Path(np.get_include()), out / "run", threads=2, limit_bytes=MEGABYTE, reporter=Reporters())


@pytest.fixture(scope="module")
def text(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> SampleText:
    path = tmp_path_factory.mktemp("text") / "sample.parquet"
    return SampleText(path, write_sample(corpus.config.out, path, sample_bytes=MEGABYTE // 5))


@pytest.fixture(scope="module")
def vocabularies(corpus: Corpus, text: SampleText, tmp_path_factory: pytest.TempPathFactory) -> list[Vocabulary]:
    foreign = make_cl100k(read_contents(text.path), tmp_path_factory.mktemp("cl100k"), vocab_size=1000, threads=2)
    return [Vocabulary("plain", corpus.config.out / "tokenizer"), foreign]


@pytest.fixture(scope="module")
def peers(vocabularies: list[Vocabulary], text: SampleText, in_process: None) -> list[Peer]:
    return list(find_peers(vocabularies, text, Reporters()))


def test_every_encoder_runs_the_vocabularies_that_it_takes(peers: list[Peer]) -> None:
    found = [(peer.encoder, peer.vocabulary.name) for peer in peers]
    ours = [(encoder, "plain") for encoder in ("cppmill", "fastokens", "tokenizers")]
    assert found == [*ours, *((encoder, "cl100k") for encoder in CL100K_PEERS)]


@pytest.mark.parametrize(("threads", "warm"), [(1, False), (2, True)])
def test_all_have_the_ids_of_tokenizers(peers: list[Peer], threads: int, warm: bool) -> None:
    comparison = measure_peers("encode", peers, threads, warm=warm, rounds=1)
    assert comparison.different == ()
    assert [figure.row.name for figure in comparison.figures] == [
        f"{peer.encoder}, {peer.vocabulary.name}" for peer in peers
    ]
    sizes = {figure.row.name: figure.row.input_bytes for figure in comparison.figures}
    assert sizes["tokenizers, plain"] < sizes["cppmill, plain"] == peers[0].text.num_bytes


def test_other_ids_have_no_speed(peers: list[Peer]) -> None:
    wrong = replace(peers[1], expected=hashlib.sha256(b"").hexdigest())
    comparison = measure_peers("encode", [peers[0], wrong], 1, warm=False, rounds=1)
    assert comparison.different == ("fastokens, plain",)
    assert [figure.row.name for figure in comparison.figures] == ["cppmill, plain"]


def test_counting_agrees_with_encoding(vocabularies: list[Vocabulary], text: SampleText) -> None:
    comparison = measure_counting(vocabularies[:1], text, 1, rounds=1)
    assert comparison.different == ()
    names = ["cppmill, plain, encode_batch", "cppmill, plain, count_batch"]
    assert [figure.row.name for figure in comparison.figures] == names


def test_hard_inputs_have_the_size_that_they_say() -> None:
    sizes = {name: len(text) for name, text in hard_inputs()}
    assert sizes.pop("one line of words") == 200_000_000
    assert set(sizes.values()) == {1_000_000}


@pytest.mark.usefixtures("in_process")
def test_the_stages_and_datatrove_are_measured_on_the_same_documents(corpus: Corpus, tmp_path: Path) -> None:
    comparisons = list(measure_tokenizing(corpus.config, corpus.num_bytes, tmp_path, rounds=1))
    names = [[figure.row.name for figure in comparison.figures] for comparison in comparisons]
    assert names == [["cppmill", "datatrove"], ["cppmill"], ["cppmill"]]
    assert write_texts(corpus.config.out, tmp_path / "again").num_bytes == corpus.num_bytes


def test_equality_keeps_what_it_found_and_names_what_differs(vocabularies: list[Vocabulary], tmp_path: Path) -> None:
    contents = [b"int x;\n", b"a\xff\xc3\xa9\xe2\x82 <EOS>", b"", b"// \xc3\xa9\n"]
    documents = {
        "doc_id": [hashlib.sha256(content).hexdigest() for content in contents],
        "path": [f"{row}.cpp" for row in range(len(contents))],
        "content": contents,
    }
    (tmp_path / "run/documents").mkdir(parents=True)
    pq.write_table(pa.table(documents), tmp_path / "run/documents/part-0.parquet")
    folders = [str(tmp_path / "run"), str(tmp_path / "references")]
    arguments = [*folders, "--tokenizer", str(vocabularies[0].folder), "--processes", "1"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "4 documents (1 not UTF-8)" in first.output
    assert "all ids are equal" in first.output
    reference = tmp_path / "references/part-0.parquet"
    rows = pq.read_table(reference)
    changed = rows["tokens"].to_pylist()
    changed[1] += 1
    pq.write_table(rows.set_column(1, "tokens", pa.array(changed, pa.uint64())), reference)
    second = CliRunner().invoke(app, arguments)
    assert second.exit_code == 1
    assert "1 differ" in second.output
    assert "1.cpp" in second.output
    assert [path.name for path in tmp_path.glob("run/**/*") if path.is_file()] == ["part-0.parquet"]
