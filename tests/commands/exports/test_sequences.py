"""`cppmill sequences` on a real run: every token where it belongs, no loss across documents, the same bytes again."""

import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain, repeat

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cppmill_core import Control

from configs.exports import ExportConfig
from pipelines.console.progress import Reporters
from pipelines.exports import sequences
from schemas.errors import ConfigError, IntegrityError
from schemas.export_options import Fim, SequenceOptions
from schemas.options import TokenizeOptions
from transforms.exports.sequences.export import make_rows, pad_id, read_texts, sequences_schema
from transforms.exports.sequences.proofs import prove_sequences
from transforms.exports.sequences.segments import Encoding, make_segments
from transforms.records.manifests import MANIFEST, read_manifest, verify_export
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import token_shards

LENGTH = 1024


@dataclass
class Made:
    """An export: its rows and its manifest."""

    rows: list
    manifest: dict
    folder: object

    @property
    def totals(self):
        return Counter(self.manifest["totals"])

    def segments(self):
        """Yield name, first token, ids, loss and (fim, start, end) of every segment."""
        for row in self.rows:
            ends = [*row["starts"][1:], row["num_tokens"]]
            fims = zip(row["fim"], row["fim_starts"], row["fim_ends"], strict=True) if "fim" in row else repeat(None)
            places = zip(row["doc_ids"], row["starts"], ends, row["first_tokens"], fims, strict=False)
            for name, start, end, first, fim in places:
                yield name, first, row["token_ids"][start:end], row["loss_mask"][start:end], fim


@pytest.fixture(scope="module")
def small_units():
    """Units of a few shards each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "UNIT_TOKENS", 50_000)
        yield


@pytest.fixture(scope="module")
def make(run, small_units, tmp_path_factory):
    """Make sequences of the run, in this process."""

    def export(folder=None, *, threads=2, **options):
        folder = folder or tmp_path_factory.mktemp("sequences") / "out"
        given = SequenceOptions(**{"length": LENGTH, **options})
        sequences.run(ExportConfig(run=run.out, out=folder, options=given, worker_threads=threads), Reporters())
        rows = [row for path in sorted(folder.rglob("part-*")) for row in pq.read_table(path).to_pylist()]
        return Made(rows, read_manifest(OutputFolder(folder)), folder)

    return export


@pytest.fixture(scope="module")
def documents(run):
    """Project, path, text and ids of the run's documents, by doc_id."""
    tokens = pq.read_table(run.out / "tokens", columns=["doc_id", "token_ids"]).to_pylist()
    ids = {row["doc_id"]: row["token_ids"] for row in tokens}
    columns = ["doc_id", "project", "path", "content"]
    shards = sorted((run.out / "documents").glob("part-*"))
    rows = [row for shard in shards for row in pq.read_table(shard, columns=columns).to_pylist()]
    return {row["doc_id"]: {**row, "ids": ids[row["doc_id"]]} for row in rows}


@pytest.fixture(scope="module")
def tokenizer(run):
    return cppmill_core.Tokenizer.from_dir(run.out / "tokenizer")


@pytest.fixture(scope="module")
def packed(make):
    return make()


@pytest.mark.parametrize("mode", ["pack", "pad"])
def test_every_token_of_every_document_occurs_once(make, documents, mode):
    made = make(mode=mode)
    found = defaultdict(dict)
    for name, first, ids, _, _ in made.segments():
        assert first not in found[name]
        found[name][first] = ids
    joined = {name: [token for first in sorted(parts) for token in parts[first]] for name, parts in found.items()}
    assert joined == {name: document["ids"] for name, document in documents.items()}
    assert all(len(row["token_ids"]) == len(row["loss_mask"]) == LENGTH for row in made.rows)
    assert mode == "pack" or all(row["starts"] == [0] for row in made.rows)


def test_no_loss_crosses_a_document_or_falls_on_padding(packed, tokenizer):
    for row in packed.rows:
        expected = [place < row["num_tokens"] and place not in row["starts"] for place in range(LENGTH)]
        assert row["loss_mask"] == expected
        assert set(row["token_ids"][row["num_tokens"] :]) <= {tokenizer.control_id("<PAD>")}
    with_loss = sum(sum(row["loss_mask"]) for row in packed.rows)
    assert packed.totals["positions_with_loss"] == with_loss
    assert packed.totals["positions"] == LENGTH * len(packed.rows)
    assert with_loss / packed.totals["positions"] > 0.95


def test_long_documents_are_dropped_or_cut_and_counted(make, documents):
    long = {name for name, document in documents.items() if len(document["ids"]) > LENGTH}
    dropped, cut = make(long="drop"), make(long="cut")
    assert {name for name, *_ in dropped.segments()} == documents.keys() - long
    assert dropped.totals["documents_left_out_long"] == len(long) > 0
    assert {name: ids for name, _, ids, _, _ in cut.segments()} == {
        name: document["ids"][:LENGTH] for name, document in documents.items()
    }
    assert cut.totals["tokens_cut"] == sum(len(documents[name]["ids"]) - LENGTH for name in long)


def test_rearranged_segments_are_the_bytes_of_their_document_split_as_recorded(make, documents, tokenizer):
    kinds = Counter()
    control = {tokenizer.control_id(name): name for name in ("<FIM_PREFIX>", "<FIM_SUFFIX>", "<FIM_MIDDLE>")}
    made = [make(length=8192, fim_rate=0.6, fim_spm_share=0.5, seed=seed) for seed in range(10)]
    for name, first, ids, loss, (kind, start, end) in chain.from_iterable(one.segments() for one in made):
        kinds[kind] += 1
        document = documents[name]
        if kind == Fim.NONE:
            assert ids == document["ids"][first : first + len(ids)]
            continue
        assert loss == [place > 0 for place in range(len(ids))]
        if len(document["ids"]) > 8192:
            continue
        text = document["content"]
        order = [control[token] for token in ids if token in control]
        assert order == ["<FIM_PREFIX>", "<FIM_SUFFIX>", "<FIM_MIDDLE>"]
        pieces = (text[:start], text[end:], text[start:end])
        if kind == Fim.SPM:
            pieces = (b"", text[end:], text[:end])
        parts = [part for name, piece in zip(order, pieces, strict=True) for part in (Control(name), piece)]
        if kind == Fim.SPM:  # the prefix and the middle are encoded by themselves
            parts[-1:] = [text[:start], text[start:end]]
        expected = tokenizer.encode_parts([Control("<BOS>"), *parts, Control("<EOS>")]).to_pylist()
        assert ids == expected
    share = (kinds[Fim.PSM] + kinds[Fim.SPM]) / kinds.total()
    assert abs(share - 0.6) < 0.06
    assert abs(kinds[Fim.SPM] / (kinds[Fim.PSM] + kinds[Fim.SPM]) - 0.5) < 0.08
    assert (kinds[Fim.PSM], kinds[Fim.SPM]) == tuple(
        sum(one.totals[f"segments_{kind}"] for one in made) for kind in ("psm", "spm")
    )


def test_rearranging_fits_pieces_of_split_documents_too(make, documents):
    made = make(length=256, fim_rate=1.0)
    assert made.totals["segments_psm"] + made.totals["segments_spm"] > 0.98 * made.totals["segments"]
    long = {name for name, first, *_ in made.segments() if first}
    assert long == {name for name, document in documents.items() if len(document["ids"]) > 256}


def test_repositories_are_the_files_of_a_project_with_their_paths(make, documents, tokenizer):
    made = make(repositories=True)
    parts = defaultdict(dict)
    files = []
    for row in made.rows:
        files += row["file_doc_ids"]
        assert [row["token_ids"][place] for place in row["file_starts"]] == [
            tokenizer.control_id("<FILE_SEP>") for _ in row["file_starts"]
        ]
    for name, first, ids, _, _ in made.segments():
        parts[name][first] = ids
    projects = defaultdict(list)
    for document in sorted(documents.values(), key=lambda document: document["path"].encode()):
        projects[document["project"]].append(document)
    assert sorted(files) == sorted(documents)
    assert parts.keys() == projects.keys() == {"numpy", "arrow"}
    for project, found in parts.items():
        expected = [Control("BOS")]
        for document in projects[project]:
            expected += [Control("FILE_SEP"), document["path"] + "\n", document["content"]]
        joined = [token for first in sorted(found) for token in found[first]]
        assert joined == tokenizer.encode_parts([*expected, Control("EOS")]).to_pylist()


def test_weights_repeat_and_leave_out(make, documents):
    made = make(weights=(("num*", 2.5),), default_weight=0.0)
    copies = Counter(name for name, first, *_ in made.segments() if first == 0)
    assert copies.keys() == {name for name, document in documents.items() if document["project"] == "numpy"}
    assert set(copies.values()) == {2, 3}
    assert made.totals["documents_left_out_weight"] == len(documents) - len(copies) > 0
    tokens = sum(copies[name] * len(documents[name]["ids"]) for name in copies)
    assert made.totals["tokens_in_sequences"] == tokens


@pytest.mark.parametrize("options", [{"fim_rate": 0.5}, {"repositories": True}])
def test_the_bytes_are_the_same_on_other_threads_and_after_a_crash(make, options):
    first, second = make(threads=1, **options), make(threads=2, **options)
    files = {path.name: path.read_bytes() for path in first.folder.rglob("part-*")}
    assert len(files) > 1
    assert first.manifest["digest"] == second.manifest["digest"]
    lost = sorted(first.folder.rglob("part-*"))[0]
    for path in (lost, first.folder / MANIFEST):
        path.unlink()
    again = make(first.folder, threads=2, **options)
    assert again.manifest["digest"] == first.manifest["digest"]
    assert {path.name: path.read_bytes() for path in first.folder.rglob("part-*")} == files
    assert verify_export(OutputFolder(first.folder)) == []


def test_another_seed_splits_elsewhere_and_nothing_else_does(make):
    first, again, other = (make(length=4096, fim_rate=0.5, seed=seed) for seed in (1, 1, 2))
    assert first.manifest["digest"] == again.manifest["digest"] != other.manifest["digest"]


def test_the_footer_says_which_tokenizer(packed, run):
    path = sorted(packed.folder.rglob("part-*"))[0]
    footer = pq.read_metadata(path).metadata
    assert footer[b"cppmill.tokenizer"].decode() == run.receipt["tokenizer"]["digest"]
    assert int(footer[b"cppmill.max_token_id"]) < int(footer[b"cppmill.vocab_size"])
    assert pq.read_schema(path).field("token_ids").type == pa.list_(pa.field("item", pa.uint16(), False), LENGTH)


def _other_id(row):
    row["token_ids"][1] ^= 1


def _loss_across(row):
    row["loss_mask"][row["starts"][-1]] = True


def _loss_lost(row):
    row["loss_mask"][1] = False


def _loss_on_padding(row):
    row["loss_mask"][-1] = not row["loss_mask"][-1]


def _padding_that_is_text(row):
    row["num_tokens"] -= 1


def _moved_split(row):
    row["fim_starts"] = [start + (kind == Fim.PSM) for kind, start in zip(row["fim"], row["fim_starts"], strict=True)]


def _other_start(row):
    row["first_tokens"] = [first + 1 for first in row["first_tokens"]]


@pytest.mark.parametrize(
    "harm",
    [_other_id, _loss_across, _loss_lost, _loss_on_padding, _padding_that_is_text, _moved_split, _other_start, None],
)
def test_reading_back_finds_every_difference(run, tokenizer, tmp_path, harm):
    options = SequenceOptions(length=LENGTH, fim_rate=0.5)
    texts = list(read_texts(OutputFolder(run.out), token_shards(run.receipt)[:1], options))
    encoding = Encoding(tokenizer, TokenizeOptions())
    segments, ledger = make_segments(texts, options, encoding)
    pad, schema = pad_id(tokenizer), sequences_schema(tokenizer.vocab_size, options)
    rows = pa.Table.from_batches(make_rows(segments, texts, options, pad_id=pad, schema=schema)).to_pylist()
    if harm:
        for row in rows:
            harm(row)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "rows.parquet")

    def prove():
        return prove_sequences(tmp_path / "rows.parquet", texts, options, encoding, pad_id=pad, ledger=ledger)

    if harm:
        with pytest.raises(IntegrityError, match=r"rows\.parquet, from row 0"):
            prove()
    else:
        assert prove()["sequences"] == len(rows)
        pq.write_table(pa.Table.from_pylist(rows[1:], schema=schema), tmp_path / "rows.parquet")
        with pytest.raises(IntegrityError, match="were planned"):
            prove()


def test_the_command_makes_sequences_and_prints_what_it_made(run, cppmill, tmp_path):
    (tmp_path / "weights.toml").write_text('default = 1\n[projects]\narrow = 0\n"boost*" = 2\n')
    flags = ["--length", 512, "--mode", "pad", "--long", "cut", "--mixture", tmp_path / "weights.toml", "--fim", "0.1"]
    done = cppmill("sequences", run.out, "--out", tmp_path / "made", *flags)
    manifest = read_manifest(OutputFolder(tmp_path / "made"))
    totals = manifest["totals"]
    assert manifest["options"]["weights"] == [["arrow", 0], ["boost*", 2]]
    assert (
        f"{totals['positions_with_loss'] / totals['positions']:.2%} of the positions are tokens with loss"
        in done.stderr
    )
    assert "no document takes the weight of boost*" in done.stderr
    assert np.isclose(totals["positions"], 512 * totals["segments"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--length", "8"], "--length 8: not allowed"),
        (["--length", "64", "--mode", "heap"], "--mode heap: not allowed"),
        (["--length", "64", "--fim", "2"], "--fim 2: not allowed"),
        (["--length", "64", "--fim", "0.5", "--repositories"], "--repositories --fim: cannot be combined"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_written(run, cppmill, tmp_path, flags, message):
    done = cppmill("sequences", run.out, "--out", tmp_path / "made", *flags, check=False)
    assert (done.returncode, (tmp_path / "made").exists()) == (2, False)
    assert message in done.stderr


def test_a_tokenizer_without_the_control_tokens_is_named(make, monkeypatch):
    monkeypatch.setattr(
        "transforms.exports.sequences.fill_in_middle.NAMES", ("<FIM_PREFIX>", "<FIM_GONE>", "<FIM_MIDDLE>")
    )
    monkeypatch.setattr("transforms.exports.sequences.repositories.FILE_SEP", "<FILE_GONE>")
    with pytest.raises(ConfigError, match="FIM_GONE"):
        make(fim_rate=0.5)
    with pytest.raises(ConfigError, match="FILE_GONE"):
        make(repositories=True)


def test_a_changed_token_shard_is_refused(copied_run, tmp_path):
    shard = sorted((copied_run.out / "tokens").glob("part-*"))[0]
    shutil.copy2(sorted((copied_run.out / "tokens").glob("part-*"))[1], shard)
    config = ExportConfig(run=copied_run.out, out=tmp_path / "made", options=SequenceOptions(length=LENGTH))
    with pytest.raises((IntegrityError, RuntimeError), match=shard.name):
        sequences.run(config, Reporters())
    assert not (tmp_path / "made" / MANIFEST).exists()
