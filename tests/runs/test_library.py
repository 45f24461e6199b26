"""cppmill as a library: the commands as functions, and a finished run as an object."""

import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

import cppmill
from configs.keywords import HOMES
from configs.tables import KEYS
from pipelines.console.progress import Reporters


class Stages(Reporters):
    """Keeps the names of the stages that ran."""

    def __init__(self):
        super().__init__()
        self.names = []

    def stage_done(self, stage, seconds, summary):
        self.names.append(stage)


def test_a_run_by_keywords_is_the_run_of_the_command(run, tmp_path):
    stages = Stages()
    options = {"tokenizer": run.out / "tokenizer", "ingest": {"unit_bytes": 1 << 17}}
    made = cppmill.run(run.sources, out=tmp_path / "out", reporter=stages, **options)
    assert made.receipt["dataset"] == run.receipt["dataset"]
    assert stages.names == ["read", "ingest", "tokenize", "validate"]
    planned = cppmill.plan([run.sources], out=tmp_path / "out", **options)
    assert {unit.action for unit in planned} == {"skip"}


def test_keywords_win_over_a_file(run, tmp_path):
    (tmp_path / "run.toml").write_text("[ingest]\nlimit = 3\nmax_document_bytes = 9000\n")
    made = cppmill.run(
        run.sources, out=tmp_path / "out", config=tmp_path / "run.toml", limit=2, tokenizer=run.out / "tokenizer"
    )
    assert made.receipt["configs"]["ingest"]["limit"] == 2
    assert made.receipt["configs"]["ingest"]["max_document_bytes"] == 9000


def test_what_a_finished_run_has(run):
    opened = cppmill.open_run(run.out)
    receipt = opened.receipt
    assert receipt == run.receipt
    assert opened.verify() == []
    assert opened.tokenizer.digest == receipt["tokenizer"]["digest"]
    assert opened.ledger.loc[("kept", "")].to_dict() == {
        unit: receipt["ledger"][unit]["kept"] for unit in ("documents", "bytes")
    }
    assert opened.ledger.iloc[1:].sum().equals(opened.ledger.iloc[0])
    assert repr(opened).endswith(
        f"{receipt['dataset']['documents']:,} documents, {receipt['dataset']['tokens']:,} tokens)"
    )


def test_the_tables_of_a_finished_run(run):
    opened = cppmill.open_run(run.out)
    receipt = opened.receipt
    assert set(opened.tables) >= {"documents", "tokens", "words", "terms", "morphemes", "namespaces", "decisions"}
    tokens = opened.table("tokens", ["doc_id", "num_tokens"])
    assert list(tokens.columns) == ["doc_id", "num_tokens"]
    assert tokens["num_tokens"].sum() == receipt["dataset"]["tokens"]
    documents = opened.dataset("documents")
    assert documents.count_rows() == receipt["dataset"]["documents"]
    decisions = pq.read_table(run.out / "tokenizer/decisions.parquet").to_pandas()
    pd.testing.assert_frame_equal(opened.table("decisions"), decisions)
    with pytest.raises(cppmill.ConfigError, match="no table 'token'; there are documents, "):
        opened.table("token")
    with pytest.raises(cppmill.ConfigError, match="table 'tokens' has no column 'ids'; it has doc_id, "):
        opened.table("tokens", ["ids"])


def test_a_changed_run_is_told_by_check(run, tmp_path):
    cppmill.check(run.out)
    made = cppmill.run(run.sources / "numpy", out=tmp_path / "out", tokenizer=run.out / "tokenizer")
    shard = sorted((tmp_path / "out/tokens").glob("part-*"))[0]
    shard.write_bytes(shard.read_bytes()[:-1])
    assert shard.name in made.verify()[0]
    with pytest.raises(cppmill.IntegrityError, match=shard.name):
        cppmill.check(tmp_path / "out")
    with pytest.raises(cppmill.ConfigError, match=r"no receipt\.json"):
        cppmill.open_run(tmp_path)


def test_check_takes_what_verify_takes(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.out, copy)
    shutil.rmtree(copy / "units")
    with pytest.raises(cppmill.IntegrityError, match="there are no unit receipts"):
        cppmill.check(copy)
    cppmill.check(copy, published=True)
    (tmp_path / "signers").write_text("")
    with pytest.raises(cppmill.IntegrityError, match=r"receipt\.json\.sig"):
        cppmill.check(copy, published=True, signed_by=tmp_path / "signers")


def test_versions_without_a_store_are_refused_by_its_name(run):
    with pytest.raises(cppmill.ConfigError, match="store: not given"):
        cppmill.retokenize(run.sources)


def test_versions_by_keywords(run, tmp_path):
    sources, store = run.sources / "numpy", tmp_path / "store"
    first = cppmill.retokenize(sources, store=store, tokenizer=run.out / "tokenizer", drift={"drift": False})
    assert (first.version, first.drift) == ("v000001", None)
    # What a tokenizer is built with counts for the first version alone, as flags do.
    again = cppmill.retokenize(sources, store=store, vocab_size=9000)
    assert (again.version, again.changes) == ("v000001", None)
    second = cppmill.retokenize([sources], store=store, limit=5)
    assert second.changes["documents"]["removed"] > 0
    assert cppmill.open_run(f"{store}/current").receipt["dataset"]["documents"] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabsize": 3}, r"vocabsize: no such option; did you mean vocab_size\?"),
        ({"ingest": 3}, r"ingest: a table of options, to be given as a dict: ingest=\{\.\.\.\}"),
        ({"vocab_size": "big"}, 'build.vocab_size = "big": not allowed; it takes a whole number'),
        ({"ingest": {"limits": 1}}, r"ingest.limits = 1: .* did you mean limit\?"),
    ],
)
def test_options_that_there_are_none_of_are_refused_by_name(run, tmp_path, options, message):
    with pytest.raises(cppmill.ConfigError, match=message):
        cppmill.run(run.sources, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_drift_is_checked_like_options(run, tmp_path):
    with pytest.raises(cppmill.ConfigError, match=r"options.alert_x = 1: unknown key"):
        cppmill.retokenize(run.sources, store=tmp_path / "store", drift={"alert_x": 1})


def test_every_key_has_one_table():
    assert len(HOMES) == sum(map(len, KEYS.values()))


def test_there_is_nothing_else():
    assert {"run", "plan", "verify", "retokenize", "open_run", "Run"} <= set(dir(cppmill))
    for name in cppmill.__all__:
        assert getattr(cppmill, name).__name__ == name or name == "Summary"
    with pytest.raises(AttributeError, match="'runs'"):
        cppmill.runs  # noqa: B018


def test_a_table_of_other_files_than_the_receipt_names_is_an_error(copied_run):
    first, second = sorted((copied_run.out / "tokens").glob("part-*.parquet"))[:2]
    shutil.copy(first, second)
    opened = cppmill.open_run(copied_run.out)
    assert len(opened.table("documents")) == copied_run.receipt["dataset"]["documents"]
    with pytest.raises(cppmill.IntegrityError, match=f"{second.name}: missing, or not the file that the receipt names"):
        opened.table("tokens")
