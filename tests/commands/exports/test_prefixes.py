"""`cppmill sequences --prefix`: the line of a document's platforms is in each of its segments, with loss or without."""

import shutil
from collections import defaultdict

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from configs.exports import ExportConfig
from pipelines.console.progress import Reporters
from pipelines.exports import sequences
from schemas.errors import IntegrityError
from schemas.export_options import Fim, SequenceOptions
from schemas.options import TokenizeOptions
from transforms.exports.sequences.export import make_rows, pad_id, read_texts, sequences_schema
from transforms.exports.sequences.prefixes import Span, insert_prefix, remove_prefix, usable_prefix
from transforms.exports.sequences.proofs import prove_sequences
from transforms.exports.sequences.segments import Encoding, make_segments
from transforms.records.manifests import read_manifest
from transforms.records.receipts import read_receipt
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import token_shards

LENGTH = 512


@pytest.fixture(scope="module")
def prefixed(run, prepared, cppmill):
    """The folder of a run with lines of platforms, in the form with categories; not to be changed."""

    def make(folder):
        options = ["--platform-prefix", "--platform-prefix-form", "categories", "--tokenizer", run.out / "tokenizer"]
        cppmill("run", run.sources / "numpy", "--out", folder / "out", *options)

    return prepared("prefixed-run", make) / "out"


@pytest.fixture(scope="module")
def documents(prefixed):
    """Ids and ids of the line of each document, by doc_id."""
    rows = pq.read_table(prefixed / "tokens", columns=["doc_id", "token_ids", "prefix_token_ids"]).to_pylist()
    assert any(row["prefix_token_ids"] for row in rows)
    return {row["doc_id"]: (row["token_ids"], row["prefix_token_ids"]) for row in rows}


@pytest.fixture(scope="module")
def bos(prefixed):
    return cppmill_core.load_tokenizer(prefixed / "tokenizer").control_id("<BOS>")


@pytest.fixture(scope="module")
def make(prefixed, tmp_path_factory):
    """Make sequences of the run, in this process; give rows and totals."""

    def export(**options):
        folder = tmp_path_factory.mktemp("sequences") / "out"
        given = SequenceOptions(**{"length": LENGTH, **options})
        sequences.run(ExportConfig(run=prefixed, out=folder, options=given), Reporters())
        rows = [row for path in sorted(folder.rglob("part-*")) for row in pq.read_table(path).to_pylist()]
        return rows, read_manifest(OutputFolder(folder))["totals"]

    return export


def segments(rows):
    """Yield name, first token, ids, loss, and where in these the prefix is, of every segment."""
    for row in rows:
        ends = [*row["starts"][1:], row["num_tokens"]]
        for at, (start, end) in enumerate(zip(row["starts"], ends, strict=True)):
            prefix = slice(row["prefix_starts"][at] - start, row["prefix_ends"][at] - start)
            yield (
                row["doc_ids"][at],
                row["first_tokens"][at],
                row["token_ids"][start:end],
                row["loss_mask"][start:end],
                prefix,
            )


@pytest.mark.parametrize("mode", ["pack", "pad"])
@pytest.mark.parametrize("loss", ["loss", "no-loss"])
def test_every_segment_has_its_documents_line_behind_bos_and_the_rest_of_it_is_as_without(
    make, documents, bos, loss, mode
):
    rows, totals = make(prefix=loss, mode=mode)
    parts, prefixed = defaultdict(dict), 0
    for name, first, ids, mask, prefix in segments(rows):
        assert ids[prefix] == documents[name][1]
        assert (prefix.start == 1) == (ids[0] == bos) == (first == 0)
        outside = [place for place in range(len(ids)) if not prefix.start <= place < prefix.stop]
        assert mask == [place > 0 and (loss == "loss" or place in outside) for place in range(len(ids))]
        parts[name][first] = [ids[place] for place in outside]
        prefixed += bool(ids[prefix])
    joined = {name: [token for first in sorted(found) for token in found[first]] for name, found in parts.items()}
    assert joined == {name: ids for name, (ids, _) in documents.items()}
    assert (totals["segments_with_prefix"], sum(sum(row["loss_mask"]) for row in rows)) == (
        prefixed,
        totals["positions_with_loss"],
    )


def test_rearranged_segments_have_it_too_and_the_same_documents_are_cut(make, documents):
    rows, totals = make(prefix="no-loss", fim_rate=1.0)
    assert totals["segments_psm"] + totals["segments_spm"] > 0.9 * totals["segments"]
    kinds = [kind for row in rows for kind in row["fim"]]
    for (name, _, ids, mask, prefix), kind in zip(segments(rows), kinds, strict=True):
        assert ids[prefix] == documents[name][1]
        assert not any(mask[prefix])
        assert kind == Fim.NONE or len(ids) > len(documents[name][1])
    longest = max(len(prefix) for _, prefix in documents.values())
    _, dropped = make(prefix="no-loss", long="drop")
    fit = sum(len(ids) + len(prefix) <= LENGTH for ids, prefix in documents.values())
    assert dropped["documents_in_sequences"] == fit
    assert longest > 5


def test_a_line_of_more_than_half_a_sequence_is_left_out(make, documents):
    rows, totals = make(prefix="loss", length=16)
    fits = {name for name, (_, prefix) in documents.items() if 0 < len(prefix) <= 8}
    found = {name for name, _, ids, _, prefix in segments(rows) if ids[prefix]}
    assert found == fits
    assert fits != documents.keys()
    assert totals["segments"] > totals["segments_with_prefix"]


def test_an_export_without_it_has_the_options_of_before(make, run):
    assert "prefix" not in SequenceOptions(length=LENGTH).to_json()
    rows, totals = make()
    assert not [name for name in (*rows[0], *totals) if "prefix" in name]


def test_a_prefix_is_inserted_behind_bos_and_removed_again():
    ids, prefix = np.array([1, 7, 8], np.uint16), np.array([5, 6], np.uint16)
    for at in (0, 1):
        joined, place = insert_prefix(ids, prefix, bos=at)
        assert (place, joined[slice(*place)].tolist()) == (Span(at, at + 2), [5, 6])
        assert remove_prefix(joined, place).tolist() == ids.tolist()
    assert insert_prefix(ids, prefix[:0], bos=1)[1] == Span(1, 1)
    assert [len(usable_prefix(np.arange(tokens), SequenceOptions(length=16))) for tokens in (2, 8, 9)] == [2, 8, 0]


def _other_line(row):
    row["token_ids"][row["prefix_starts"][0]] ^= 1


def _moved_line(row):
    row["prefix_starts"] = [start + 1 for start in row["prefix_starts"]]


def _no_line(row):
    row["prefix_ends"] = row["prefix_starts"]


def _loss_on_line(row):
    row["loss_mask"][row["prefix_starts"][0]] = True


@pytest.mark.parametrize("harm", [_other_line, _moved_line, _no_line, _loss_on_line, None])
def test_reading_back_finds_every_difference(prefixed, tmp_path, harm):
    out = OutputFolder(prefixed)
    tokenizer = cppmill_core.load_tokenizer(prefixed / "tokenizer")
    options = SequenceOptions(length=LENGTH, prefix="no-loss")
    texts = list(read_texts(out, token_shards(read_receipt(out))[:1], options))
    encoding, pad = Encoding(tokenizer, TokenizeOptions()), pad_id(tokenizer)
    made, ledger = make_segments(texts, options, encoding)
    schema = sequences_schema(tokenizer.vocab_size, options)
    rows = pa.Table.from_batches(make_rows(made, texts, options, pad_id=pad, schema=schema)).to_pylist()
    for row in rows:
        if harm and row["prefix_starts"][0] < row["prefix_ends"][0]:
            harm(row)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "rows.parquet")

    def prove():
        return prove_sequences(tmp_path / "rows.parquet", texts, options, encoding, pad_id=pad, ledger=ledger)

    if harm is None:
        assert prove()["sequences"] == len(rows)
        return
    with pytest.raises(IntegrityError, match=r"rows\.parquet, from row 0"):
        prove()


def test_what_cannot_be_made_is_refused(run, prefixed, cppmill, tmp_path):
    for source, flags, message in (
        (run.out, ["--prefix", "loss"], "has no lines of platforms; run again with --platform-prefix"),
        (prefixed, ["--prefix", "some"], "--prefix some: not allowed; it takes one of"),
        (prefixed, ["--prefix", "loss", "--repositories"], "--repositories --prefix: cannot be combined"),
    ):
        out = tmp_path / "made"
        done = cppmill("sequences", source, "--out", out, "--length", 512, *flags, check=False)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
        shutil.rmtree(out, ignore_errors=True)


def test_the_command_says_how_many_segments_have_it(prefixed, cppmill, tmp_path):
    done = cppmill("sequences", prefixed, "--out", tmp_path / "made", "--length", 512, "--prefix", "no-loss")
    totals = read_manifest(OutputFolder(tmp_path / "made"))["totals"]
    said = f"{totals['tokens_of_prefixes']:,} tokens in {totals['segments_with_prefix']:,} segments"
    assert said in done.stderr
    assert cppmill("verify", tmp_path / "made").returncode == 0
