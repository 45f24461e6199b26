"""The drift of versions: its numbers are those of a whole count, it moves no id, and beyond a threshold it alerts."""

from __future__ import annotations

import json
import re
import shutil
import tomllib

import cppmill_core
import numpy as np
import pyarrow.parquet as pq
import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.report.program import write_report
from pipelines.stages import run as whole_run
from pipelines.versions.retokenize import Request, retokenize
from pipelines.versions.verify import verify
from schemas.study_options import DriftOptions
from tests.prepared import SourcesAndStore
from tests.rotten import rot_values, rotten
from tests.signing import rewrite, seal
from tokenizer_build.bands import Strength
from tokenizer_build.compare.diff import read_ids
from transforms.drift.names import TOTALS
from transforms.drift.record import write_drift
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder
from transforms.tokens.usage import read_usage

NAMES = ["v000001", "v000002", "v000003"]
USERS = ("messages", "relay")
CALLS = ("client_open", "client_close", "server_listen", "pipe_connect", "msg_alloc")


class Store(SourcesAndStore):
    """Versions that were made in this process."""

    def again(self, *, drift=None, **flags):
        """Retokenize in this process."""
        return retokenize(
            Request(file=None, flags=self.flags | flags, keep=3, drift=drift or DriftOptions()), Reporters()
        )

    def record(self, name):
        return json.loads((self.place / "drift" / f"{name}.json").read_bytes())

    def usage(self, name):
        """What the token shards of a version hold, counted anew."""
        receipt = self.receipt(name)
        shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
        out = OutputFolder(self.out(name))
        return read_usage(out, shards, receipt["tokenizer"]["vocab_size"], threads=1)

    def add_api(self):
        """Add two projects that use an API which no document had, names and a namespace, in four files."""
        for number in range(4):
            folder = self.sources / USERS[number % 2]
            folder.mkdir(exist_ok=True)
            calls = "".join(f"  qzx_{call}(qzx_{call}_arg{number}, qzw::{call});\n" for call in CALLS)
            (folder / f"use{number}.cpp").write_text(f"void use{number}() {{\n{calls}}}\n" * 3)

    def remove_api(self):
        for name in USERS:
            shutil.rmtree(self.sources / name)


@pytest.fixture(scope="module")
def store(run, tmp_path_factory):
    """Three versions: numpy alone, then an API and arrow too, then without arrow."""
    folder = tmp_path_factory.mktemp("drift")
    made = Store(folder / "sources", folder / "store")
    shutil.copytree(run.sources / "numpy", made.sources / "numpy")
    made.again(**{"--tokenizer": str(run.out / "tokenizer"), "--unit-bytes": str(1 << 16)})
    made.add_api()
    shutil.copytree(run.sources / "arrow", made.sources / "arrow")
    header = sorted((made.sources / "numpy").rglob("*.h"))[0]
    header.write_text(header.read_text() + "// changed by a test\n")
    made.again()
    shutil.rmtree(made.sources / "arrow")
    made.again()
    return made


@pytest.fixture
def copied(store, tmp_path):
    """A copy of the store that a test may change; its sources are read again, as they are elsewhere."""
    shutil.copytree(store.sources, tmp_path / "sources")
    shutil.copytree(store.place, tmp_path / "store", symlinks=True)
    return Store(tmp_path / "sources", tmp_path / "store")


@pytest.fixture(scope="module")
def tokenizer(run):
    folder = run.out / "tokenizer"
    return read_ids(folder, cppmill_core.load_tokenizer(folder))


def check_totals(store, name, reference):
    """Compare the totals of a version with a whole count."""
    out = store.out(name)
    ids = pq.read_table(out / ".cache/drift_totals/ids.parquet")
    assert np.array_equal(ids["count"], store.usage(name).ids), name
    assert np.array_equal(ids["reference"], reference), name
    scanner = cppmill_core.Scanner('{"pattern": "cpp-words-1", "families": true}')
    for shard in (out / "documents").glob("part-*.parquet"):
        for batch in pq.read_table(shard, columns=["project", "content"]).to_batches():
            scanner.add(batch)
    counts = scanner.finish()
    found = pq.read_table(out / TOTALS).to_pylist()
    families = [row for row in found if row["kind"] == "family"]
    assert families == [
        {"kind": "family", "name": row["family"], "hits": row["hits"], "documents": row["documents"]}
        for row in counts["families"].to_pylist()
    ]
    namespaces = {row["name"]: row["hits"] for row in found if row["kind"] == "namespace"}
    assert sum(namespaces.values()) == sum(counts["namespaces"]["hits"].to_pylist())
    assert namespaces.keys() == set(counts["namespaces"]["namespace"].to_pylist())


def test_totals_that_were_carried_on_are_those_of_a_whole_count(store):
    for name in NAMES:
        check_totals(store, name, store.usage("v000001").ids)


def test_only_new_shards_are_counted_and_old_counts_are_removed(store):
    for name in NAMES:
        out = store.out(name)
        counted = len(list((out / ".cache/drift").glob("_unit-*.json")))
        assert counted == len(store.receipt(name)["dataset"]["shards"])
    shared = [
        path.name
        for path in (store.place / "versions/v000001/.cache/drift").iterdir()
        if (other := store.place / "versions/v000002/.cache/drift" / path.name).exists() and other.samefile(path)
    ]
    assert len(shared) >= 3


def test_the_amounts_are_those_of_receipts_and_shards(store, tokenizer):
    entries = tokenizer.entries
    sizes = np.array([len(tokenizer.tokenizer.token_bytes(entry.id) or b"") for entry in entries])
    fixed = np.array([entry.strength in (Strength.PINNED, Strength.ATOMIC) for entry in entries])
    first = store.usage("v000001").ids
    rare = (first * 1_000_000 < first.sum()) & (sizes > 0)
    for before, name in zip([None, *NAMES], NAMES, strict=False):
        record, dataset, ids = store.record(name), store.receipt(name)["dataset"], store.usage(name).ids
        assert (record["version"], record["previous"]) == (name, before)
        assert record["reference"] == {"version": "v000001", "rare_per_million": 1.0, "rare_ids": rare.sum()}
        assert record["after"] == {
            **{key: dataset[key] for key in ("documents", "bytes", "tokens")},
            "bytes_per_token": round(dataset["bytes"] / dataset["tokens"], 6),
            "rare_share": round(ids[rare].sum() / ids[sizes > 0].sum(), 6),
            "fixed_bytes_share": round((ids * sizes)[fixed].sum() / dataset["bytes"], 6),
        }
        assert record["before"] == (before and store.record(before)["after"])
    assert store.record("v000002")["after"]["rare_share"] > 0


def test_the_new_text_is_the_documents_whose_content_is_new(store):
    new = store.record("v000002")["new"]
    projects = {row["project"]: row for row in store.record("v000002")["projects"]["named"]}
    arrow, *users = (store.usage("v000002").projects[name] for name in ("arrow", *USERS))
    header = sorted((store.sources / "numpy").rglob("*.h"))[0]
    assert new["documents"] == arrow.documents + 4 + 1
    assert new["bytes"] == arrow.num_bytes + sum(user.num_bytes for user in users) + header.stat().st_size
    ratio = round(arrow.num_bytes / arrow.tokens, 6)
    assert projects["arrow"] == {
        **{"project": "arrow", "before": None, "after": ratio, "new": ratio},
        "bytes": arrow.num_bytes,
    }
    assert projects["numpy"]["bytes"] == header.stat().st_size
    assert None not in (projects["numpy"]["before"], projects["numpy"]["after"])
    gone = store.record("v000003")
    assert (gone["new"]["documents"], gone["new"]["bytes_per_token"], gone["projects"]["number"]) == (0, None, 0)


def test_new_families_are_named_by_what_their_names_begin_with(store):
    found = {row["name"]: row for row in store.record("v000002")["families"]["named"]}
    api = found["qzx_"]
    assert (api["kind"], api["documents"], api["hits"], api["names"]) == ("family", 4, 120, 10)
    assert (api["hits_before"], api["documents_before"]) == (0, 0)
    assert found["qzw"]["kind"] == "namespace"
    assert not [name for name in found if name.startswith(("qzx_c", "npy_"))], "a part of a family, and an old one"
    assert store.record("v000003")["families"] == {"number": 0, "named": []}


def test_ids_that_died_are_learned_ones_that_the_version_before_used(store, tokenizer):
    before, after = (store.usage(name).ids for name in NAMES[1:])
    learned = np.array([entry.strength is Strength.LEARNED for entry in tokenizer.entries])
    died = {
        entry.id: entry for entry in tokenizer.entries if learned[entry.id] and before[entry.id] > after[entry.id] == 0
    }
    found = store.record("v000003")["ids"]
    assert found["died"]["number"] == len(died) > 0
    assert found["used"] == {kind: ((ids > 0) & learned).sum() for kind, ids in (("before", before), ("after", after))}
    most = found["died"]["named"]
    assert [row["before"] for row in most] == sorted((int(before[id_]) for id_ in died), reverse=True)[: len(most)]
    assert all(row["token"] == str(died[row["id"]]) for row in most)


def test_what_died_and_what_is_proposed_moves_no_id(store):
    assert len({store.receipt(name)["tokenizer"]["digest"] for name in NAMES}) == 1
    proposed = tomllib.loads((store.place / "drift/v000002.proposals.toml").read_text())
    names = proposed["candidates"][0]["tokens"]
    assert "qzx_client_open" in names.values()
    assert store.record("v000002")["proposals"]["names"] == len(names)
    taken = {row["id"] for row in json.loads((store.place / "current/tokenizer/manifest.json").read_bytes())["tokens"]}
    assert not taken & {int(number) for number in names}
    assert not (store.place / "drift/v000001.proposals.toml").exists()


def test_versions_with_drift_are_proved_and_are_those_without(store, run, tmp_path):
    for name in NAMES:
        assert verify(str(store.place / "versions" / name)) == []
    flags = {"SOURCE": (str(store.sources),), "--out": str(tmp_path / "out"), "--unit-bytes": str(1 << 16)}
    flags["--tokenizer"] = str(run.out / "tokenizer")
    whole_run.run(load_run_config(flags=flags), Reporters())
    receipt = json.loads((tmp_path / "out/receipt.json").read_bytes())
    assert receipt["dataset"] == store.receipt("v000003")["dataset"]


def test_beyond_a_threshold_there_is_a_version_an_event_a_line_and_an_exit_code(copied, cppmill):
    copied.remove_api()
    copied.again()
    copied.add_api()
    done = cppmill(*copied.command, "--alert-families", 1, "--alert-died", 10_000, "--quiet", check=False)
    assert (done.returncode, done.stdout) == (12, "")
    assert done.stderr == "v000005 is complete; 2 API families are new; the threshold is 1\n"
    assert (copied.place / "current").readlink().name == "v000005"
    assert verify(f"{copied.place}/current") == []
    [alert] = copied.record("v000005")["alerts"]
    assert (alert["measure"], alert["value"], alert["threshold"]) == ("families", 2, 1)
    logs = sorted((copied.place / ".cache/events").iterdir())
    events = [json.loads(line) for line in logs[-1].read_text().splitlines()]
    assert [event["alerts"] for event in events if event["event"] == "drift_alert"] == [[alert]]
    assert events[-1]["outcome"] == "done"
    assert cppmill("status", copied.place).returncode == 0
    shown = cppmill("changes", copied.place, "--drift", check=False)
    assert shown.returncode == 12
    assert "drifted           2 API families are new" in shown.stdout
    assert "qzx_* (120 hits in 4 documents)" in shown.stdout
    assert cppmill(*copied.command, "--alert-families", 1, check=False).returncode == 10


def test_an_alert_of_json_is_an_event_before_the_last_one(copied, cppmill):
    copied.remove_api()
    done = cppmill(*copied.command, "--alert-died", 1, "--json", check=False)
    assert done.returncode == 12
    alert, last = [json.loads(line) for line in done.stdout.splitlines()][-2:]
    assert (alert["event"], last["event"]) == ("drift_alert", "retokenized")
    assert alert["alerts"] == last["drift"]["alerts"]
    left_out = ("format", "digest")
    assert last["drift"] == {name: value for name, value in copied.record("v000004").items() if name not in left_out}


@pytest.mark.parametrize("change", [{"alerts": [1]}, {"before": [1]}, {"families": {"number": [], "named": []}}])
def test_a_record_of_another_layout_is_named(copied, cppmill, change):
    record = {name: value for name, value in copied.record("v000003").items() if name != "digest"}
    write_drift(Versions(str(copied.place)), record | change)
    done = cppmill("changes", copied.place, "--drift", check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{copied.place}/drift/v000003.json: not laid out as a record" in done.stderr


@pytest.mark.parametrize(("least", "codes"), [(0, {"compression", "rare"}), (1 << 20, set())])
def test_little_new_text_alerts_for_no_share(copied, least, codes):
    text = "".join(f"zqjx{number:05d}wvk = 0x{number * number:x};\n" for number in range(3000))
    (copied.sources / "numpy" / "strange.h").write_text(text)
    options = DriftOptions(alert_compression=0.1, alert_rare=0.0, alert_min_bytes=least)
    assert {alert["measure"] for alert in copied.again(drift=options).alerts} == codes


def test_a_store_without_drift_is_gone_on_with(run, tmp_path):
    """As one that an older program made: nothing is recorded of drift, and no counts are kept."""
    old = Store(tmp_path / "sources", tmp_path / "store")
    shutil.copytree(run.sources / "numpy", old.sources / "numpy")
    off = DriftOptions(drift=False)
    made = old.again(drift=off, **{"--tokenizer": str(run.out / "tokenizer"), "--unit-bytes": str(1 << 16)})
    assert made.drift is None
    assert not [path for path in old.place.rglob("*") if "drift" in path.name]
    old.add_api()
    record = old.again().drift
    assert record["before"]["tokens"] == old.receipt("v000001")["dataset"]["tokens"]
    unknown = [
        record["before"]["rare_share"],
        record["families"],
        record["ids"]["died"],
        record["ids"]["used"]["before"],
    ]
    assert unknown == [None] * 4
    assert (record["reference"]["version"], record["new"]["documents"]) == ("v000002", 4)
    old.remove_api()
    third = old.again().drift
    assert third["before"] == record["after"]
    assert (third["reference"]["version"], third["families"]) == ("v000002", {"number": 0, "named": []})


def damage(path, kind):
    """Damage the totals of ids or names; what shares their bytes is left as it is."""
    data, other = path.read_bytes(), path.with_name({"ids": "names", "names": "ids"}[path.stem] + ".parquet")
    table = pq.read_table(path)
    path.unlink()
    if kind == "rotten":
        path.write_bytes(rotten(data))
    elif kind == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "the other":
        shutil.copy(other, path)
    elif kind == "without values":
        pq.write_table(table.set_column(table.num_columns - 1, table.column_names[-1], [[None] * len(table)]), path)
    elif kind == "backwards":
        pq.write_table(table.take(list(range(len(table) - 1, -1, -1))), path)


@pytest.mark.parametrize("kind", ["missing", "rotten", "cut", "the other", "without values", "backwards"])
@pytest.mark.parametrize("name", ["ids", "names"])
def test_lost_or_damaged_totals_are_added_up_again(copied, name, kind):
    damage(copied.out("v000003") / f".cache/drift_totals/{name}.parquet", kind)
    reference = copied.usage("v000001").ids
    (copied.out("v000001") / "receipt.json").unlink()  # as if removing it was interrupted; v000002 has its ids too
    copied.remove_api()
    record = copied.again().drift
    assert (record["before"], record["reference"]["version"]) == (copied.record("v000003")["after"], "v000001")
    assert record["families"] == {"number": 0, "named": []}
    check_totals(copied, "v000004", reference)


def test_counts_that_rot_are_counted_again_before_they_are_added_where_nothing_was_recorded(copied):
    shutil.rmtree(copied.place / "drift")
    rot_values(min(copied.out("v000003").glob(".cache/drift/ids-*.parquet")))
    copied.remove_api()
    copied.again()
    check_totals(copied, "v000004", copied.usage("v000004").ids)


def test_counts_that_cannot_be_added_up_again_are_not_compared_and_that_is_noted(copied, cppmill):
    out = copied.out("v000003")
    (out / ".cache/drift_totals/names.parquet").unlink()
    sorted((out / ".cache/drift").glob("names-*"))[0].write_bytes(b"PAR1")
    copied.remove_api()
    said = cppmill(*copied.command).stderr
    assert f"{out}/.cache: counts for drift are missing or damaged; of v000003, only what its receipt says" in said
    record = copied.record("v000004")
    assert (record["families"], record["ids"]["died"], record["reference"]["version"]) == (None, None, "v000004")
    assert record["before"]["tokens"] == copied.receipt("v000003")["dataset"]["tokens"]
    assert verify(f"{copied.place}/current") == []


@pytest.mark.parametrize("lost", ["drift/v000003.json", "versions/v000003/.cache"])
def test_what_is_lost_of_the_version_before_is_not_compared(copied, lost):
    path = copied.place / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    copied.remove_api()
    record = copied.again().drift
    assert (record["families"], record["reference"]["version"]) == (None, "v000004")
    assert record["before"]["tokens"] == copied.receipt("v000003")["dataset"]["tokens"]


def test_another_tokenizer_is_a_reference_of_its_own_and_names_are_still_compared(copied, other_tokenizer):
    before = copied.record("v000003")["after"]
    record = copied.again(**{"--tokenizer": str(other_tokenizer)}).drift
    assert record["reference"]["version"] == "v000004"
    assert (record["before"], record["ids"]["died"]) == (before, None)
    assert (record["new"]["documents"], record["families"]["number"]) == (0, 0)


def test_a_store_without_a_record_says_so_in_a_line(run, cppmill, tmp_path):
    command = ("retokenize", run.sources / "numpy", "--store", tmp_path, "--tokenizer", run.out / "tokenizer")
    cppmill(*command, "--no-drift")
    done = cppmill("changes", tmp_path, "--drift", check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "no drift of v000001 is recorded" in done.stderr
    assert cppmill("changes", tmp_path, "--drift", "--trend", check=False).returncode == 2


def test_the_report_of_a_store_has_the_drift_of_each_version(store, tmp_path):
    write_report(str(store.place), tmp_path / "page.html", threads=1)
    section = (tmp_path / "page.html").read_text().partition('<section id="drift">')[2].partition("</section>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in section.split("<tr>")]
    shown = {row[0]: row[1:] for row in rows if row}
    assert list(shown) == NAMES[::-1]
    for name in NAMES:
        record = store.record(name)
        amounts = [record[kind] or {} for kind in ("before", "after", "new")]
        ratios = [amount.get("bytes_per_token") for amount in amounts]
        assert shown[name][:3] == ["–" if ratio is None else f"{ratio:.3f}" for ratio in ratios]
        rare = [amount.get("rare_share") for amount in amounts]
        assert shown[name][3:6] == ["–" if share is None else f"{100 * share:.3f}%" for share in rare]
        died, families = record["ids"]["died"], record["families"]
        assert shown[name][6:8] == ["–" if found is None else f"{found['number']:,}" for found in (died, families)]


@pytest.mark.parametrize(("folder", "option"), [("changes", ()), ("drift", ("--drift",))])
def test_the_record_of_another_store_is_not_printed(copied, cppmill, folder, option):
    assert cppmill("changes", copied.place, *option).stdout
    path = copied.place / folder / "v000003.json"

    def change(record):
        record["receipt"] = {**record["receipt"], "after": 64 * "0"} if folder == "changes" else 64 * "0"
        seal(record)

    rewrite(path, change)
    done = cppmill("changes", copied.place, *option, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"{path}: its receipt is {64 * '0'}, that of {copied.out('v000003')}/receipt.json is" in done.stderr


def test_records_are_looked_at_too_where_the_link_to_the_current_version_is_verified(copied):
    assert verify(f"{copied.place}/current") == []
    path = copied.place / f"changes/{Versions(copied.place).current}.json"

    def add(record):
        record["documents"]["added"] += 5
        seal(record)

    rewrite(path, add)
    places = (f"{copied.place}/current", f"{copied.place}/current/", Versions(copied.place).out(path.stem).root)
    assert all(path.name in " ".join(verify(place)) for place in places)
