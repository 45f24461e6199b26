"""A run that was changed and signed again, every digest true, is still found out wherever its files contradict."""

import hashlib
import json
import re
import shutil

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cppmill_core.adoption import find_source, write_directory
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cppmill as library
import transforms.tokens.tokenize
from pipelines.versions.layout_checks import check_copies, check_duplicates, check_reasons, is_possible
from pipelines.versions.verify import verify
from schemas.digests import canonical_json, sha256_file
from schemas.errors import CppmillError
from schemas.options import IngestOptions
from schemas.tables import REJECTS
from tests.fuzzing import examples
from tests.signing import mend_tokenizer, rewrite, seal, sign_again, sign_units, units
from transforms.filters.kept_counts import added_columns, count_kept, sum_counts
from transforms.records.checks.unit_checks import RunUnits
from transforms.storage.folder import OutputFolder
from transforms.units.batches import list_column


def receipt(**tables):
    """Return a forgery of tables of the receipt."""

    def forge(out):
        rewrite(out / "receipt.json", lambda value: [value[name].update(new) for name, new in tables.items()])

    return forge


def options(**tables):
    """Return a forgery of the options in the receipt."""

    def change(value):
        for name, new in tables.items():
            value["configs"][name].update(new)

    return lambda out: rewrite(out / "receipt.json", change)


def unit(folder, change):
    """Return a forgery of a unit receipt."""
    return lambda out: rewrite(units(out, folder)[0], change)


def column(pattern, name, change):
    """Return a forgery of a column in a Parquet file; its other columns and its footer stay."""

    def forge(out):
        path = sorted(out.glob(pattern))[0]
        table = pq.read_table(path, partitioning=None)
        place = table.schema.get_field_index(name)
        values = pa.array(change(table.column(name).to_pylist()), table.schema.field(place).type)
        footer = {key: value for key, value in pq.read_metadata(path).metadata.items() if key != b"ARROW:schema"}
        changed = table.set_column(place, table.schema.field(place), values).replace_schema_metadata(footer)
        pq.write_table(changed, path)

    return forge


def more_documents_in_the_ledger(value):
    for column_of, amount in (("documents", 1), ("bytes", 10)):
        value["ledger"][column_of]["dead"] = {"changed": amount}
        value["ledger"][column_of]["in"] += amount


def other_inputs(value):
    value["inputs"] = dict.fromkeys(value["inputs"], "0" * 64)


def other_project(values):
    return ["zz", *values[1:]]


def exchanged(values):
    return [values[1], values[0], *values[2:]]


def first_more(values):
    return [values[0] + 1, *values[1:]]


def first_other_bytes(values):
    return [bytes([values[0][0] ^ 1]) + values[0][1:], *values[1:]]


def table_line(out):
    path = out / "tokenizer/vocab.tsv"
    path.write_bytes(path.read_bytes().replace(b"\tpinned\t", b"\tatomic\t", 1))


def statistics(out):
    rewrite(out / "counts/statistics.json", lambda value: value["bytes"].update(code=1))


def named_as_its_own(name):
    """Return a forgery of a unit receipt, which names a file as what the unit made."""
    return lambda value: value["outputs"].append({"path": name, "sha256": "", "num_bytes": 0, "rows": 0})


def template_of_the_build(out):
    """Put a chat template beside the tokenizer, and name it in the receipt of the build and in that of the run."""
    (out / "tokenizer/chat_template.jinja").write_text("{{ messages }}")
    unit("tokenizer", named_as_its_own("tokenizer/chat_template.jinja"))(out)
    rewrite(out / "receipt.json", lambda value: value["files"].update({"tokenizer/chat_template.jinja": ""}))


def without(name):
    """Return a forgery that removes a file of the build and all mentions of it."""

    def forge(out):
        (out / name).unlink()
        made = json.loads(units(out, "tokenizer")[0].read_bytes())["outputs"]
        left = [output for output in made if output["path"] != name]
        unit("tokenizer", lambda value: value.update(outputs=left))(out)
        rewrite(out / "receipt.json", lambda value: value["files"].pop(name))

    return forge


def shards_exchanged(out):
    """Exchange the statistics of two shards, whose sum stays."""
    one, other = sorted(out.glob("counts/parts/statistics-*"))[:2]
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.unlink(), other.unlink()
    one.write_bytes(other_bytes), other.write_bytes(one_bytes)


def evidence_alone(out):
    """Leave documents the evidence for their platforms, but no ids, and say that no platforms were searched for."""
    options(ingest={"detect_platforms": False})(out)
    for path in [*out.glob("documents/part-*"), *out.glob("tokens/part-*")]:
        column(path.relative_to(out).as_posix(), "platform_ids", lambda values: [[]] * len(values))(out)


def retyped(name, kind):
    """Return a forgery of the type of a column of documents."""

    def forge(out):
        path = next((out / "documents").glob("part-*"))
        rows = pq.read_table(path, partitioning=None)
        place = rows.column_names.index(name)
        path.unlink()
        pq.write_table(rows.set_column(place, name, rows[name].combine_chunks().cast(kind)), path)

    return forge


FORGERIES = {
    "sizes as text": (retyped("num_bytes", pa.string()), "damaged (Function 'sum' has no kernel"),
    "licences as views": (retyped("license", pa.string_view()), "damaged (Function 'array_take' has no kernel"),
    "a file that a proof made": (
        unit("proofs", named_as_its_own("platform_vocab.json")),
        "platform_vocab.json is no file that a unit of validate makes",
    ),
    "a file that the build made elsewhere": (
        unit("tokenizer", named_as_its_own("platform_vocab.json")),
        "platform_vocab.json is no file that a unit of build makes",
    ),
    "inputs of documents": (
        unit("documents", lambda value: value["inputs"].update({"platform_vocab.json": ""})),
        "it names inputs, and a unit of ingest has none",
    ),
    "a template of the build": (template_of_the_build, "chat_template.jinja: no file of a tokenizer"),
    "statistics of another shard": (shards_exchanged, "it counts"),
    "content": (column("documents/part-*", "content", first_other_bytes), "bytes of content with SHA-256"),
    "license": (column("documents/part-*", "license", lambda values: ["MIT"] * len(values)), "there are licences"),
    "size of a document": (column("documents/part-*", "num_bytes", first_more), "its documents and rejects give"),
    "a file of the build": (unit("tokenizer", lambda value: value["outputs"].pop()), "vocab.tsv: no unit receipt"),
    "the order of shards": (
        lambda out: rewrite(out / "receipt.json", lambda value: value["dataset"]["shards"].reverse()),
        "its shards are not in the order of their paths",
    ),
    "a root without a list": (
        lambda out: rewrite(out / "receipt.json", lambda value: value.update(exclusion={"root": "", "doc_ids": 0})),
        "it has exclusion, which only a run with a list of withdrawn documents has",
    ),
    "policy": (receipt(policy={"bos": False}), "it says policy bos"),
    "a number for a truth": (receipt(policy={"bos": 1}), "it says policy bos"),
    "projects of a shard": (column("counts/parts/terms*", "project", other_project), "of which its shard has no"),
    "words in another order": (column("counts/parts/words*", "word", exchanged), "words are not in order"),
    "revision": (receipt(tokenizer={"revision": "9.9"}), "the revision is unreleased"),
    "tokenizer of others": (receipt(tokenizer={"kept": True}), "it says that the tokenizer is of"),
    "platform vocabulary": (receipt(platform_vocab={"digest": "0" * 64}), "platform_vocab.json: its digest"),
    "no version of cppmill": (
        lambda out: rewrite(out / "receipt.json", lambda value: value["code"].pop("cppmill")),
        "code.cppmill is missing",
    ),
    "control text": (unit("tokens", lambda value: value["totals"].update(control_text={"<EOS>": 3})), "control_text"),
    "inputs of a token shard": (unit("tokens", other_inputs), "its input documents/part"),
    "inputs of a proof": (unit("proofs", other_inputs), "its input"),
    "inputs of a build": (unit("tokenizer", other_inputs), "its input counts/"),
    "totals of a proof": (unit("proofs", lambda value: value["totals"].update(tokens=1)), "it says tokens 1 (counted"),
    "digest in a proof": (
        unit("proofs", lambda value: value["totals"].update(corpus_digest="0" * 64)),
        "corpus_digest",
    ),
    "totals of documents": (unit("documents", lambda value: value["totals"].update(documents=0)), "its totals are"),
    "ledger": (unit("documents", more_documents_in_the_ledger), "its documents and rejects give"),
    "rows of a file": (unit("documents", lambda value: value["outputs"][0].update(rows=0)), "rows, it says"),
    "words": (column("counts/words/part-000*", "count", first_more), "counts/words: count add up to"),
    "terms": (column("counts/terms*", "hits", first_more), "counts/terms: hits, documents add up to"),
    "projects": (column("counts/namespaces*", "projects", first_more), "not what the counts of shards give"),
    "statistics": (statistics, "not the sum of the statistics"),
    "decisions": (column("tokenizer/decisions*", "hits", first_more), "decisions.parquet: "),
    "table of ids": (table_line, "vocab.tsv: not the table"),
    "size in the options": (options(build={"vocab_size": 65536}), "its vocab_size is 12288"),
    "profile in the options": (options(build={"profile": "demo"}), "its profile is hybrid-64k"),
    "platforms in the options": (options(ingest={"detect_platforms": False}), "none were searched for"),
    "evidence for platforms": (evidence_alone, "none were searched for"),
    "conversion in the options": (options(ingest={"convert_wide_text": True}), "it lacks source_doc_id"),
    "limit in the options": (options(ingest={"max_document_bytes": 10}), "the options allow 10"),
}


def test_words_in_another_order_are_named_and_not_merged_again(copied_run):
    column("counts/parts/words*", "word", exchanged)(copied_run.out)
    sign_again(copied_run.out)
    assert "words are not in order" in " ".join(verify(str(copied_run.out), 1))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_that_is_signed_again_is_found(copied_run, name):
    forge, message = FORGERIES[name]
    # Keys hold the version of the core: of another one, which is not here, they prove nothing.
    receipt(code={"cppmill-core": "0.1.9"})(copied_run.out)
    forge(copied_run.out)
    sign_again(copied_run.out)
    assert message in " ".join(verify(str(copied_run.out)))


def more_columns(out):
    path = out / "counts/terms.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("author", pa.array(["x"] * len(table))), path)


def decision_lines(out):
    path = out / "tokenizer/decisions.txt"
    path.write_bytes(path.read_bytes().replace(b"token", b"names", 1))


def configuration(out):
    rewrite(out / "tokenizer/tokenizer_config.json", lambda value: value.update(model_max_length=512))
    mend_tokenizer(out)


def all_used(rules):
    return ["used"] * len(rules)


def with_nulls(out):
    path = sorted(out.glob("counts/parts/namespaces-*"))[0]
    table = pq.read_table(path)
    pq.write_table(table.cast(pa.schema([field.with_nullable(True) for field in table.schema])), path)


OF_THIS_VERSION = {
    "no table of ids": (without("tokenizer/vocab.tsv"), "tokenizer/vocab.tsv: the build did not make it"),
    "no findings": (without("tokenizer/findings.md"), "tokenizer/findings.md: the build did not make it"),
    "no decisions as a table": (
        without("tokenizer/decisions.parquet"),
        "tokenizer/decisions.parquet: the build did not make it",
    ),
    "no decisions": (without("tokenizer/decisions.txt"), "tokenizer/decisions.txt: the build did not make it"),
    "a column that may have nulls": (with_nulls, "is missing, or may have nulls"),
    "an option of the build": (options(build={"min_hits": 11}), "is the vocabulary of this installation"),
    "a pattern that there is not": (options(scan={"pattern": "nonsense"}), "'nonsense', which there is not"),
    "an option that there is not": (options(ingest={"note": 1}), "Extra inputs are not permitted"),
    "extensions": (options(ingest={"extensions": ["cpp"]}), "an extension that the options do not accept"),
    "an extension in upper case": (
        options(ingest={"extensions": ["cpp", "h", "hpp", "TXX"]}),
        'ingest.extensions[3] = "TXX": not allowed; lower case and no dot',
    ),
    "a column without a name": (options(ingest={"content_column": ""}), "ingest.content_column"),
    "a filter on content": (options(ingest={"max_line_bytes": 1}), "by the options it is filtered long_lines"),
    "a licence": (options(ingest={"allowed_licenses": ["MIT"], "unlicensed": "drop"}), "it is filtered license"),
    "versions of nothing": (receipt(code={"licenses": "1"}), "its code has 'licenses', which no run writes"),
    "a reader without a version": (
        options(ingest={"readers": ["cu"]}),
        "its code has no version of cppmill.readers:cu",
    ),
    "word partitions": (options(scan={"word_partitions": 17}), "the options of the scan give 17"),
    "a key of the receipt": (receipt(corpus={"note": 1}), "corpus has the key 'note'"),
    "a count of an option that is off": (receipt(corpus={"altered": 0}), "it says corpus altered 0"),
    "licences that were not looked for": (receipt(corpus={"licenses": {"MIT": 5}}), "it says corpus licenses"),
    "nothing as a vocabulary": (receipt(tokenizer={"vocabulary": None}), "its tokenizer has values that no run writes"),
    "a tokenizer that is not kept": (receipt(tokenizer={"kept": False}), "its tokenizer has values that no run"),
    "a key of a proof": (unit("proofs", lambda value: value["totals"].update(note=1)), "it has the key 'note'"),
    "a column": (more_columns, "the column 'author' is not of this table there"),
    "a decision": (
        column("tokenizer/decisions.parquet", "rule", lambda rows: ["used"] * len(rows)),
        "decide otherwise",
    ),
    "the text of decisions": (decision_lines, "decisions.txt: not the table"),
}


@pytest.mark.parametrize("name", OF_THIS_VERSION)
def test_what_a_run_of_this_version_does_not_write_is_found(copied_run, name):
    forge, message = OF_THIS_VERSION[name]
    forge(copied_run.out)
    sign_again(copied_run.out)
    found = " ".join(verify(str(copied_run.out)))
    assert found
    assert message in found


@pytest.fixture(scope="module")
def by_use(run, cppmill, tmp_path_factory):
    """A run in which the use of fixed tokens decides which of them stay."""
    out = tmp_path_factory.mktemp("by-use") / "out"
    options = ("--vocab-size", "12288", "--unit-bytes", "262144", "--set", "build.min_fixed_use=1.0")
    cppmill("run", run.sources, "--out", out, *options)
    return out


def test_a_run_in_which_use_decides_is_proved(by_use):
    assert verify(str(by_use)) == []


def other_decision(values):
    place = values.index("used")
    return [*values[:place], "unneeded", *values[place + 1 :]]


def other_number(values):
    return [number + 1 if number == 0 else number for number in values]


USED = {"rule": (other_decision, "decide otherwise"), "documents": (other_number, "counted (")}


@pytest.mark.parametrize("name", USED)
def test_decisions_by_use_that_contradict_themselves_are_found(by_use, tmp_path, name):
    out = shutil.copytree(by_use, tmp_path / "out")
    change, message = USED[name]
    column("tokenizer/decisions.parquet", name, change)(out)
    sign_again(out)
    assert message in " ".join(verify(str(out)))


def move(out, old, new):
    """Give a file another name, in all that names it."""
    (out / new).parent.mkdir(parents=True, exist_ok=True)
    (out / old).rename(out / new)

    def rename_in_unit(value):
        for output in value["outputs"]:
            output["path"] = new if output["path"] == old else output["path"]
        value["inputs"] = {new if name == old else name: digest for name, digest in value["inputs"].items()}

    def rename_in_receipt(value):
        value["files"] = {new if name == old else name: digest for name, digest in value["files"].items()}
        for shard in value["dataset"]["shards"]:
            shard["path"] = new if shard["path"] == old else shard["path"]
        value["dataset"]["shards"].sort(key=lambda shard: shard["path"])

    for path in out.rglob("_unit-*.json"):
        rewrite(path, rename_in_unit)
    rewrite(out / "receipt.json", rename_in_receipt)


OTHER_NAMES = {
    "hidden tokens": ("tokens/part-*", "tokens/_{}"),
    "tokens of another extension": ("tokens/part-*", "tokens/{}.bak"),
    "tokens with a column of a folder": ("tokens/part-*", "tokens/project=x/{}"),
    "tokens of another key": ("tokens/part-*", f"tokens/part-{64 * '0'}.parquet"),
    "documents in a folder": ("documents/part-*", "documents/part-x/{}"),
    "documents of another extension": ("documents/part-*", "documents/{}.bak"),
    "rejects of another extension": ("documents/rejects-*", "documents/rejects-x.txt"),
    "counts of a shard": ("counts/parts/terms-*", "counts/parts/terms-x.parquet"),
}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_file_of_another_name_is_found(copied_run, name):
    pattern, new = OTHER_NAMES[name]
    path = min(copied_run.out.glob(pattern))
    receipt(code={"cppmill-core": "0.1.9"})(copied_run.out)
    move(copied_run.out, path.relative_to(copied_run.out).as_posix(), new.format(path.name))
    sign_again(copied_run.out)
    assert "a run gives none of its files this name" in " ".join(verify(str(copied_run.out)))


def test_counts_without_the_receipt_of_a_build_are_found(copied_run):
    (built,) = units(copied_run.out, "tokenizer")
    built.unlink()
    name = built.relative_to(copied_run.out).as_posix()
    rewrite(copied_run.out / "receipt.json", lambda value: value["files"].pop(name))
    column("counts/terms*", "hits", first_more)(copied_run.out)
    sign_again(copied_run.out)
    assert "no unit receipt of a build goes with the counts" in " ".join(verify(str(copied_run.out)))


@pytest.fixture(scope="module")
def given_tokenizer(run, cppmill, prepared):
    """A run with a given tokenizer, of documents in which places are replaced, from which a folder was withdrawn."""

    def make(folder):
        sources, paths, gone = folder / "sources", folder / "paths", folder / "gone.json"
        for name in ("p", "q"):
            (sources / name).mkdir(parents=True)
        (sources / "p" / "a.cpp").write_text("// me@mail.net\nint a;\n")
        (sources / "p" / "b.cpp").write_text("int b;\n")
        (sources / "q" / "c.cpp").write_text("int c;\n")
        paths.write_text("q/\n")
        cppmill("withdraw", gone, "--paths", paths)
        options = ("--tokenizer", run.out / "tokenizer", "--redact", "email", "--withdrawn", gone)
        cppmill("run", sources, "--out", folder / "given", *options)

    return prepared("given", make)


@pytest.fixture
def given_run(given_tokenizer, tmp_path):
    out = shutil.copytree(given_tokenizer / "given", tmp_path / "given")
    assert verify(str(out)) == []
    return out


@pytest.mark.parametrize("name", ["chat_template.jinja", "vocab.json", "code.py", "more/tokenizer.json"])
def test_a_strange_file_beside_a_given_tokenizer_is_found_and_not_named_by_a_run(given_run, name):
    path = given_run / "tokenizer" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    rewrite(given_run / "receipt.json", lambda value: value["files"].update({f"tokenizer/{name}": ""}))
    sign_again(given_run)
    assert verify(str(given_run)) == [f"{path}: no file of a tokenizer; programs that look for it would read it"]


LOCKS = {"of nothing": (b"garbage", "not"), "of another id": (b'"int"\t5\t1.0\n', "'int' is locked as 5")}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_denies_the_tokenizer_beside_it_is_found(copied_run, name):
    content, message = LOCKS[name]
    (copied_run.out / "tokenizer/ids.lock").write_bytes(content)
    rewrite(copied_run.out / "receipt.json", lambda value: value["files"].update({"tokenizer/ids.lock": ""}))
    sign_again(copied_run.out)
    (found,) = verify(str(copied_run.out))
    assert "tokenizer/ids.lock: " in found and message in found


def test_a_given_tokenizer_was_not_kept(given_run):
    receipt(tokenizer={"kept": True})(given_run)
    sign_again(given_run)
    assert "no unit receipt that it was built" in " ".join(verify(str(given_run)))


def test_rejects_are_withdrawn_only_if_the_list_names_them(given_run):
    rewrite(given_run / "withdrawn.json", lambda value: value.update(paths=[64 * "0"]))
    options(ingest={"withdrawn": f"sha256:{sha256_file(given_run / 'withdrawn.json')}"})(given_run)
    sign_again(given_run)
    assert "q/c.cpp is withdrawn, and withdrawn.json does not name it" in " ".join(verify(str(given_run)))


def test_replacements_are_in_documents_that_were_altered(given_run):
    receipt(code={"cppmill-core": "0.1.9"})(given_run)
    column("documents/part-*", "redacted_emails", lambda counts: counts[::-1])(given_run)
    sign_again(given_run)
    assert "has 1 places of email, and no source_doc_id" in " ".join(verify(str(given_run)))


def test_replacements_are_of_kinds_that_the_options_name(given_run):
    receipt(code={"cppmill-core": "0.1.9"})(given_run)
    options(ingest={"redact": ["ip"]})(given_run)
    sign_again(given_run)
    assert "has 1 places of email, which the options do not redact" in " ".join(verify(str(given_run)))


def test_a_tokenizer_that_was_built_is_not_said_to_be_of_another_program(copied_run, cppmill):
    """Less is checked of one that was adopted: not what `transformers` is told of it."""
    folder = copied_run.out / "tokenizer"
    (adopted := copied_run.out.parent / "adopted").mkdir()
    write_directory(find_source(folder), adopted)
    shutil.copy(adopted / "manifest.json", folder)
    configuration(copied_run.out)
    (copied_run.out / "receipt.json").unlink()  # the run makes all that follows from the tokenizer anew
    sign_units(copied_run.out)
    cppmill(*copied_run.command)
    assert "its kind is hugging-face, the options of the receipt say bpe" in " ".join(verify(str(copied_run.out)))


ALTERED = {
    "of no wide text": ("wide.h", {"source_doc_id": "0" * 64}, "of no text that could be converted to it"),
    "of text that was not converted": ("mail.h", {"redacted_emails": 0}, "of no text that could be converted to it"),
    "more places": ("mail.h", {"redacted_emails": 2}, "2 places of email, and its content does not"),
    "places without a source": ("mail.h", {"source_doc_id": None}, "1 places of email, and no source_doc_id"),
    "places of another kind": ("mail.h", {"redacted_ips": 1}, "1 places of ip, which the options do not redact"),
}


@pytest.fixture(scope="module")
def altered(run, cppmill, prepared):
    """A run of a document that is redacted, and one that is converted, with the tokenizer of another."""

    def make(folder):
        sources = folder / "sources"
        sources.mkdir()
        (sources / "mail.h").write_text("// somebody@corp-example.com\nint x;\n")
        (sources / "wide.h").write_text("int w;\n", "utf-16")
        (folder / "options.toml").write_text('[ingest]\nredact = ["email"]\nconvert_wide_text = true\n')
        cppmill(*altered_command(folder, run))

    return prepared("altered", make)


def altered_command(folder, run):
    options = ("--tokenizer", run.out / "tokenizer", "--config", folder / "options.toml")
    return ["run", folder / "sources", "--out", folder / "out", *options]


@pytest.mark.parametrize("name", ALTERED)
def test_a_document_is_altered_as_its_columns_say(name, altered, run, cppmill, tmp_path):
    """The run makes everything else anew from documents that are forged together with the receipt of their unit."""
    path, change, message = ALTERED[name]
    folder = shutil.copytree(altered, tmp_path / "altered")
    out = folder / "out"
    (out / "receipt.json").unlink()
    for file in (out / "documents").glob("part-*.parquet"):
        with pq.ParquetFile(file) as table:
            schema, rows = table.schema_arrow, table.read().to_pylist()
        for row in rows:
            row.update(change if row["path"] == path else {})
        ingest = IngestOptions(redact=("email",), convert_wide_text=True).to_json()
        forged = pa.Table.from_pylist(rows, schema)
        with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
            writer.write_table(forged)
        (receipt_of,) = units(out, "documents")
        counts = sum_counts([count_kept(forged.select(["num_bytes", *added_columns(ingest)]), ingest)], ingest)
        rewrite(receipt_of, lambda value, counts=counts: value["totals"].update(counts))
    sign_units(out)
    cppmill(*altered_command(folder, run))
    assert message in " ".join(verify(str(out)))


@pytest.mark.parametrize("evidence", ["{} {}", "[]", '{"os":1}'])
def test_evidence_that_is_none_is_damage_of_its_shard(evidence, run, cppmill, tmp_path):
    out, header = tmp_path / "out", tmp_path / "a.h"
    header.write_text("#ifdef __linux__\n#endif\n")
    command = ["run", header, "--out", out, "--tokenizer", run.out / "tokenizer", "--platform-prefix"]
    cppmill(*command)
    column("documents/part-*.parquet", "platform_info", lambda values: [evidence] * len(values))(out)
    sign_again(out)
    done = cppmill(*command, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(r"error: \S+/documents/part-\S+\.parquet: damaged \(platform_info .*", last)


def test_files_beside_a_tokenizer_are_those_of_its_manifest(copied_run):
    configuration(copied_run.out)
    with pytest.raises(cppmill_core.CorruptDataError, match="tokenizer_config.json: model_max_length is 512"):
        cppmill_core.load_tokenizer(copied_run.out / "tokenizer")


def test_a_run_takes_no_tokenizer_whose_table_is_of_another(copied_run, cppmill, tmp_path):
    folder = copied_run.out / "tokenizer"
    rows = (folder / "vocab.tsv").read_text().splitlines()
    (folder / "vocab.tsv").write_text("\n".join([*rows[:-2], rows[-1], rows[-2]]) + "\n")
    done = cppmill("run", copied_run.sources, "--out", tmp_path / "out", "--tokenizer", folder, check=False)
    assert done.returncode == 2
    assert "vocab.tsv: not the table of the tokenizer's ids" in " ".join(done.stderr.split())


def test_rejects_have_reasons_that_the_options_give():
    assert is_possible("filtered", "generated", IngestOptions(drop_generated=True))
    assert not is_possible("filtered", "generated", IngestOptions())
    assert not is_possible("duplicate", "", IngestOptions(drop_duplicates=False))


LEDGERS = {
    "a key": (lambda ledger: ledger["documents"].update(lost=0), "its ledger has keys that no run writes"),
    "a reason": (
        lambda ledger: [
            *(ledger[of].update({"in": ledger[of]["in"] + 1}) for of in ("documents", "bytes")),
            *(ledger[of]["filtered"].update(secret=1) for of in ("documents", "bytes")),
        ],
        "its ledger has filtered secret, which the options do not give",
    ),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_the_ledger_of_a_copy_is_one_that_its_options_give(copied_run, name):
    """A copy of what is published has neither rejects nor unit receipts to compare it with."""
    change, message = LEDGERS[name]
    rewrite(copied_run.out / "receipt.json", lambda value: change(value["ledger"]))
    sign_again(copied_run.out)
    for folder in ("units", "proofs", "counts"):
        shutil.rmtree(copied_run.out / folder)
    for file in (*copied_run.out.glob("documents/rejects-*"), *copied_run.out.glob("tokenizer/_unit-*")):
        file.unlink()
    assert message in " ".join(verify(str(copied_run.out), published=True))


def test_a_document_that_is_kept_twice_is_found(tmp_path):
    for number, names in enumerate((["a" * 64, "b" * 64], ["c" * 64, "a" * 64])):
        path = tmp_path / f"documents/part-{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"doc_id": names}), path)
    files = {path.relative_to(tmp_path).as_posix(): "" for path in tmp_path.rglob("*.parquet")}
    (found,) = check_copies(RunUnits(OutputFolder(str(tmp_path)), {}, {}, files))
    assert "aaaa… is there 2 times" in found


def words_exchanged(values):
    other = next(place for place, value in enumerate(values) if value != values[0])
    return [values[other], *values[1:other], values[0], *values[other + 1 :]]


def other_word(words):
    return [words[0] + b"!", *words[1:]]


MERGED = {
    "counts exchanged": column("counts/words/part-000*", "count", words_exchanged),
    "another word": column("counts/words/part-000*", "word", other_word),
}


@pytest.mark.parametrize("name", MERGED)
def test_words_whose_counts_add_up_are_found_by_merging_again(copied_run, name):
    """The footer is another too, so this asks only for what is said of the counts."""
    receipt(code={"cppmill-core": "0.1.9"})(copied_run.out)
    MERGED[name](copied_run.out)
    sign_again(copied_run.out)
    message = "part-000.parquet: not what the counts of shards give when they are merged again"
    assert message in " ".join(verify(str(copied_run.out), 1.0))


REJECT = {"project": "x", "path": "x/a.h", "num_bytes": 5, "column": "filtered", "reason": "", "detail": ""}
NEAR = {"reason": "near_duplicate"}
FALSE_REJECTS = {
    "size": ({"reason": "size"}, "has 5 bytes, of which the options allow 67108864"),
    "binary": ({"reason": "binary", "path": "x/a.txt"}, "has an extension that the options do not accept"),
    "too large": ({"reason": "binary", "num_bytes": 1 << 27}, "has 134217728 bytes, of which the options allow"),
    "extension": ({"reason": "extension"}, "has an extension that the options accept"),
    "no archive": ({"column": "dead", "reason": "not_an_archive"}, "is neither an archive nor a table"),
    "a bomb": ({"column": "dead", "reason": "expansion"}, "is neither an archive nor a table"),
    "sample": ({"reason": "sample"}, "is in the sample that the options take"),
    "empty": ({"column": "empty"}, "has 5 bytes"),
    "not empty": ({"reason": "binary", "num_bytes": 0}, "has 0 bytes"),
    "duplicate": ({"column": "duplicate", "detail": "0" * 64}, "no document of its digest and size is kept"),
    "duplicate with more digits": ({"column": "duplicate", "detail": "a" * 65}, "digest and size is kept"),
    "duplicate of half a digest": ({"column": "duplicate", "detail": "a" * 32 + "0" * 32}, "digest and size is kept"),
    "near-duplicate of none": ({**NEAR, "detail": f"0.92 like {'0' * 64}"}, "x/a.h is a near_duplicate, and no"),
    "near-duplicate without a digest": ({**NEAR, "detail": "like another"}, "x/a.h is a near_duplicate, and no"),
    "similarity": ({**NEAR, "detail": f"1.01 like {'a' * 64}"}, "x/a.h is a near_duplicate, and no"),
    "duplicate of another size": ({"column": "duplicate", "num_bytes": 6, "detail": "a" * 64}, "digest and size is"),
}


@pytest.fixture
def rejects(tmp_path):
    """Check a run of one kept document and a reject."""

    def check(sample=1.0, **facts):
        documents, names = tmp_path / "documents", ("part-0.parquet", "rejects-0.parquet")
        documents.mkdir(exist_ok=True)
        kept = pa.table({"doc_id": ["a" * 64], "num_bytes": pa.array([5], pa.uint64())})
        pq.write_table(kept, documents / names[0])
        pq.write_table(pa.Table.from_pylist([{**REJECT, **facts}], REJECTS), documents / names[1])
        files = {f"documents/{name}": "" for name in names}
        run = RunUnits(OutputFolder(str(tmp_path)), {}, {}, files)
        options = IngestOptions(sample=sample, near_duplicate_similarity=0.8)
        return " ".join([*check_reasons(run, f"documents/{names[1]}", options), *check_duplicates(run)])

    return check


@pytest.mark.parametrize("name", FALSE_REJECTS)
def test_a_reject_whose_path_or_size_deny_its_reason_is_found(rejects, name):
    facts, message = FALSE_REJECTS[name]
    assert message in rejects(**facts, sample=0.999999 if name == "sample" else 1.0)


@pytest.mark.parametrize(
    "facts",
    [
        {"reason": "size", "num_bytes": 1 << 27},
        {"reason": "binary"},
        {"reason": "extension", "path": "x/a.txt"},
        {"reason": "binary", "path": "x.jsonl/line-5"},
        {"column": "empty", "num_bytes": 0},
        {"column": "duplicate", "detail": "a" * 64},
        {**NEAR, "detail": f"1.00 like {'a' * 64}", "num_bytes": 9},
        {"column": "dead", "reason": "corrupt", "path": "x.tar"},
        {"column": "dead", "reason": "expansion", "path": "x.zip", "num_bytes": 0},
        {"column": "dead", "reason": "truncated"},
    ],
    ids=str,
)
def test_a_reject_that_nothing_denies_is_accepted(rejects, facts):
    assert rejects(**facts) == ""


def fewer_documents(value):
    value["ledger"]["documents"]["kept"] -= 1


def without_bos(value):
    value["configs"]["tokenize"]["bos"] = value["policy"]["bos"] = False


READERS = {
    "shards": ["shards", "OUT", "--out", "NEW"],
    "sequences": ["sequences", "OUT", "--out", "NEW", "--length", "512"],
    "lengths": ["lengths", "OUT"],
    "working set": ["vocab", "working-set", "OUT", "--out", "NEW"],
    "byte tables": ["byte-tables", "--tokenizer", "OUT/tokenizer", "--out", "NEW", "--check", "OUT"],
    "trace": ["trace", "--data", "OUT", "--step", "0"],
    "report": ["report", "OUT", "--out", "NEW"],
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("is_signed", [False, True], ids=["changed", "contradicts itself"])
def test_no_reader_takes_a_receipt_that_shows_its_own_fault(copied_run, cppmill, tmp_path, name, is_signed):
    rewrite(copied_run.out / "receipt.json", fewer_documents if is_signed else without_bos)
    if is_signed:
        rewrite(copied_run.out / "receipt.json", seal)
    places = {"OUT": str(copied_run.out), "NEW": str(tmp_path / "new.html")}
    words = [word.replace("OUT", places["OUT"]).replace("NEW", places["NEW"]) for word in READERS[name]]
    done = cppmill(*words, check=False)
    assert done.returncode == 1
    said = "it says kept documents" if is_signed else "its digest is"
    assert f"{copied_run.out}/receipt.json: {said}" in done.stderr
    with pytest.raises(CppmillError, match=said):
        library.open_run(copied_run.out)


def test_signing_again_alone_is_no_difference(copied_run):
    sign_again(copied_run.out)
    assert verify(str(copied_run.out)) == []


def test_keys_bind_a_dataset_to_its_options(copied_run):
    options(tokenize={"platform_prefix_form": "categories"})(copied_run.out)
    sign_again(copied_run.out)
    assert "give it another key" in " ".join(verify(str(copied_run.out)))


@pytest.fixture
def other_ids(run, cppmill, tmp_path, monkeypatch):
    """A run whose ids decode to the documents, and are not those that the tokenizer gives: each byte is one."""
    encode = transforms.tokens.tokenize.encode_documents

    def spell(documents, tokenizer, options, *, threads=1):
        rows = encode(documents, tokenizer, options, threads=threads)
        single = {tokenizer.token_bytes(id_): id_ for id_ in range(tokenizer.vocab_size)}
        ends = [(ids[0], ids[-1]) for ids in list_column(rows, "token_ids").to_pylist()]
        texts = documents.column("content").to_pylist()
        ids = [
            [first, *(single[bytes([byte])] for byte in text), last]
            for text, (first, last) in zip(texts, ends, strict=True)
        ]
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        columns["token_ids"] = pa.array(ids, rows.schema.field("token_ids").type)
        columns["num_tokens"] = pa.array(np.array([len(list_) for list_ in ids], np.uint64))
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)

    out, header = tmp_path / "out", sorted((run.sources / "arrow").rglob("*.h"))[0]
    with monkeypatch.context() as patch:
        patch.setattr(transforms.tokens.tokenize, "encode_documents", spell)
        cppmill("run", header, "--out", out, "--tokenizer", run.out / "tokenizer")
    return out


def test_ids_that_the_encoder_does_not_give_are_found_by_encoding_again(other_ids, cppmill):
    done = cppmill("verify", other_ids, check=False)
    assert done.returncode == 1
    assert re.search(r"encoded again, token_ids of rows 0 differ", done.stdout)
    cppmill("verify", other_ids, "--reencode", 0)


def test_the_sample_is_chosen_by_contents(other_ids):
    """It does not depend on anything that a forger could choose but the documents."""
    assert verify(str(other_ids), 1e-9) == verify(str(other_ids), 1)
    shard = next((other_ids / "documents").glob("part-*.parquet"))
    content = pq.read_table(shard, partitioning=None).column("content")[0].as_py()
    assert pq.read_table(shard, partitioning=None).column("doc_id")[0].as_py() == hashlib.sha256(content).hexdigest()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 1 << 40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.fuzz
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), ANYTHING)
def test_a_receipt_with_anything_in_it_ends_in_lines(copied_run, random, value):
    file = copied_run.out / "receipt.json"
    before = file.read_bytes()
    changed = place = json.loads(before)
    while True:
        name = random.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
        if not place[name] or not isinstance(place[name], dict | list) or random.random() < 0.3:
            break
        place = place[name]
    assume(json.dumps(place[name]) != json.dumps(value))
    place[name] = value
    seal(changed)
    try:
        file.write_bytes(canonical_json(changed))
        assert all(verify(str(copied_run.out), 0.0))
    except CppmillError as error:
        assert str(error)
    finally:
        file.write_bytes(before)
