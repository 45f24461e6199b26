"""A tokenizer directory whose files have true digests and contradict each other is not loaded."""

import hashlib
import json
import shutil

import cppmill_core
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from configs import VOCABULARY
from tests.fuzzing import examples
from tokenizer_build.artifact import find_foreign_contents


def swap(vocab, one, other):
    vocab[one], vocab[other] = vocab[other], vocab[one]


def name_of(vocab, id_):
    return next(text for text, found in vocab.items() if found == id_)


def swap_fixed(rules):
    swap(rules["model"]["vocab"], name_of(rules["model"]["vocab"], 100), name_of(rules["model"]["vocab"], 101))


def use_reserved(rules):
    text = "".join(rules["model"]["merges"].pop())  # nothing is made of the last token
    swap(rules["model"]["vocab"], "<RESERVED_7000>", text)


def swap_controls(rules):
    tokens = {token["content"]: token for token in rules["added_tokens"]}
    tokens["<BOS>"]["id"], tokens["<EOS>"]["id"] = tokens["<EOS>"]["id"], tokens["<BOS>"]["id"]


def lose_merges_of_fixed(rules):
    text = name_of(rules["model"]["vocab"], 101)
    merges = [merge for merge in rules["model"]["merges"] if "".join(merge) != text]
    rules["model"]["merges"] = merges


def strip_around_a_control(rules):
    rules["added_tokens"][0]["lstrip"] = True


def add_a_key(rules):
    rules["added_tokens"][0]["note"] = 1


CHANGES = {
    "an added token has another key": (add_a_key, "has note = 1"),
    "two fixed ids are swapped": (swap_fixed, "id 100 is"),
    "a reserved id is used": (use_reserved, "(?i)reserved"),
    "two special tokens are swapped": (swap_controls, "control token .<BOS>."),
    "space around a control token is eaten": (strip_around_a_control, "has lstrip = True"),
    "a fixed token cannot be reached": (lose_merges_of_fixed, "no merge makes"),
}


@pytest.fixture
def directory(run, tmp_path):
    ignored = shutil.ignore_patterns("_unit-*")
    return shutil.copytree(run.out / "tokenizer", tmp_path / "tokenizer", ignore=ignored)


@pytest.fixture
def change(directory):
    """Change tokenizer.json, and mend its digest in the manifest."""

    def make(function):
        file, manifest = directory / "tokenizer.json", directory / "manifest.json"
        rules, promises = json.loads(file.read_bytes()), json.loads(manifest.read_bytes())
        function(rules)
        file.write_text(json.dumps(rules, ensure_ascii=False, indent=1) + "\n", "utf-8")
        promises["files"]["tokenizer.json"] = hashlib.sha256(file.read_bytes()).hexdigest()
        manifest.write_text(json.dumps(promises, sort_keys=True, separators=(",", ":"), ensure_ascii=False), "utf-8")
        return directory

    return make


UNREADABLE = {
    "version": (lambda rules: rules.update(version="2.0"), 'its version is "2.0"'),
    "a part": (lambda rules: rules.update(note=1), "unknown field `note`"),
    "two forms of merges": (
        lambda rules: rules["model"]["merges"].append(" ".join(rules["model"]["merges"].pop())),
        "some merges are pairs and some are strings",
    ),
    "a setting": (lambda rules: rules["model"].update(ignore_merges=""), "`model.ignore_merges` is neither true"),
}
"""What `tokenizers` refuses to read."""


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_tokenizers_does_not_read_is_refused(change, name):
    function, message = UNREADABLE[name]
    folder = change(function)
    with pytest.raises(cppmill_core.CoreError, match=message):
        cppmill_core.Tokenizer.from_dir(folder)
    with pytest.raises(Exception, match=r"line 1|column|untagged|expected"):
        Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("name", CHANGES)
def test_a_contradiction_is_named(change, name):
    function, message = CHANGES[name]
    with pytest.raises(cppmill_core.CoreError, match=message):
        cppmill_core.Tokenizer.from_dir(change(function))


BESIDE = [
    ("tokenizer_config.json", {"eos_token": "<BOS>"}, "eos_token is '<BOS>'"),
    ("special_tokens_map.json", {"eos_token": "<BOS>"}, "eos_token is '<BOS>'"),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": "evil.Evil"}}, "it has 'auto_map'"),
    ("tokenizer_config.json", {"add_prefix_space": True}, "add_prefix_space is True"),
    ("tokenizer_config.json", {"add_prefix_space": 0}, "add_prefix_space is 0"),
    ("tokenizer_config.json", {"model_max_length": 512}, "model_max_length is 512"),
    ("tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer"}, "tokenizer_class is 'GPT2Tokenizer'"),
    ("tokenizer_config.json", {"bos_token": None}, "it lacks 'bos_token'"),
    ("special_tokens_map.json", {"pad_token": {"content": "<PAD>", "lstrip": True}}, "pad_token is {"),
    ("special_tokens_map.json", {"additional_special_tokens": ["std"]}, "it has 'additional_special_tokens'"),
]


@pytest.fixture
def promise(directory):
    """Change the manifest."""

    def make(function):
        manifest = directory / "manifest.json"
        promises = json.loads(manifest.read_bytes())
        function(promises)
        manifest.write_text(json.dumps(promises, ensure_ascii=False), "utf-8")
        return directory

    return make


@pytest.mark.parametrize(("name", "change", "message"), BESIDE, ids=[message for *_, message in BESIDE])
def test_what_transformers_must_not_be_told_is_named(directory, promise, name, change, message):
    file = directory / name
    told = {**json.loads(file.read_bytes()), **change}
    file.write_text(json.dumps({key: value for key, value in told.items() if value is not None}))
    promise(lambda promises: promises["files"].update({name: hashlib.sha256(file.read_bytes()).hexdigest()}))
    with pytest.raises(cppmill_core.CoreError, match=f"{name}: {message}"):
        cppmill_core.load_tokenizer(directory)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
def test_a_file_that_the_manifest_does_not_answer_for_is_named(promise, name):
    folder = promise(lambda promises: promises["files"].pop(name))
    with pytest.raises(cppmill_core.CoreError, match=f"no digest of {name}"):
        cppmill_core.load_tokenizer(folder)
    (folder / name).unlink()
    assert (name, "missing in the manifest; a build writes it") in find_foreign_contents(
        folder, cppmill_core.load_tokenizer(folder)
    )


def test_a_vocabulary_that_the_manifest_does_not_record_is_named(directory):
    tokenizer = cppmill_core.load_tokenizer(directory)
    assert not list(find_foreign_contents(directory, tokenizer))
    (directory / "vocabulary.json").write_text("{}")
    assert list(find_foreign_contents(directory, tokenizer)) == [
        ("vocabulary.json", "not the vocabulary that the manifest records")
    ]


def test_tokens_that_transformers_would_add_are_named_though_the_tokenizer_is_known(directory):
    cppmill_core.load_tokenizer(directory)
    (directory / "added_tokens.json").write_text('{"int x": 12288}')
    with pytest.raises(cppmill_core.CoreError, match="added_tokens.json is there, whose tokens transformers would add"):
        cppmill_core.load_tokenizer(directory)


PROMISES = {
    "listed twice": (lambda promises: promises["tokens"].append(promises["tokens"][-1]), r"lists id \d+ twice"),
    "listed twice, without bands": (
        lambda promises: (promises.pop("bands"), promises["tokens"].append(promises["tokens"][-1])),
        r"lists id \d+ twice",
    ),
    "another strength": (lambda promises: promises["tokens"][-1].update(strength="foo"), "has the strength 'foo'"),
    "no such band": (lambda promises: promises["tokens"][-1].update(band="none"), "is not in the band 'none'"),
    "text begins documents": (lambda promises: promises.update(roles={"<BOS>": 900}), "<BOS> has id 900, which is no"),
    "a role": (lambda promises: promises.update(roles={"<BOS>": 1}), "has the key 'roles', which no build writes"),
    "a key of a band": (lambda promises: promises["bands"][0].update(note=1), "the band 'control' has the key 'note'"),
    "a key of the vocabulary": (
        lambda promises: promises.update(vocabulary={"note": 1}),
        "vocabulary has the key 'note'",
    ),
    "an unknown key": (lambda promises: promises.update(note=1), "has the key 'note', which no build writes"),
    "lossy": (lambda promises: promises.update(lossy=["x"]), "has the key 'lossy', which no build writes"),
    "no name": (lambda promises: promises.update(profile=[]), r"the profile \[\] is no name"),
    "no kind": (lambda promises: promises.update(kind=None), "has the key 'kind', which no build writes"),
    "the kind of others": (
        lambda promises: promises.update(kind="hugging-face", run="native"),
        "it has the key 'bands'",
    ),
    "a band twice": (lambda promises: promises["bands"].append(promises["bands"][0]), "two bands 'control'"),
    "a band in another": (
        lambda promises: promises["bands"].append({"name": "x", "first": 9000, "last": 9001, "strength": "pinned"}),
        "the band 'x' is out of place, from 9000 to 9001",
    ),
    "a band beyond": (lambda promises: promises["bands"][-1].update(last=99999), "'learned' is out of place"),
    "no strength": (lambda promises: promises["bands"][-1].update(strength="foo"), "'learned' has the strength 'foo'"),
    "a weaker band": (
        lambda promises: promises["bands"][1].update(strength="learned"),
        r"id \d+ is pinned, and its band learned",
    ),
}


@pytest.mark.parametrize("name", PROMISES)
def test_a_manifest_that_no_build_writes_is_named(promise, name):
    function, message = PROMISES[name]
    with pytest.raises(cppmill_core.CoreError, match=message):
        cppmill_core.load_tokenizer(promise(function))


def test_a_key_that_is_there_twice_is_named(directory, promise):
    file = directory / "tokenizer.json"
    file.write_text(file.read_text("utf-8").replace('"vocab": {', '"vocab": {"int": 9999,', 1), "utf-8")
    promise(lambda promises: promises["files"].update({file.name: hashlib.sha256(file.read_bytes()).hexdigest()}))
    with pytest.raises(cppmill_core.CoreError, match="the key 'int' is there twice"):
        cppmill_core.load_tokenizer(directory)


@pytest.mark.parametrize("key", ["bands", "pattern", "profile"])
def test_no_command_takes_a_manifest_that_lacks_a_key(key, promise, run, cppmill, tmp_path):
    folder, vocabulary = promise(lambda promises: promises.pop(key)), tmp_path / "vocab"
    cppmill("vocab", "init", vocabulary)
    for command in (
        ("run", run.sources / "arrow", "--out", tmp_path / "out", "--tokenizer", folder),
        ("vocab", "release", "9.9", "--vocab", vocabulary, "--tokenizer", folder),
    ):
        done = cppmill(*command, check=False)
        assert done.returncode == 2
        assert f"manifest.json: it lacks '{key}', which a build writes" in " ".join(done.stderr.split())


def release(tokenizer, cppmill, folder):
    """Release a tokenizer with the vocabulary of the installation, and return what is said, and the lines added."""
    vocabulary = shutil.copytree(VOCABULARY, folder / "vocab")
    before = (vocabulary / "ids.lock").read_text()
    (tokenizer / "vocab.tsv").unlink()  # it is of the tokenizer as it was
    done = cppmill("vocab", "release", "9.9", "--vocab", vocabulary, "--tokenizer", tokenizer, check=False)
    return " ".join(done.stderr.split()), (vocabulary / "ids.lock").read_text().removeprefix(before)


def test_a_learned_token_in_a_band_of_its_own_is_not_released(promise, directory, cppmill, tmp_path):
    vocab = json.loads((directory / "tokenizer.json").read_bytes())["model"]["vocab"]
    token = max((name for name in vocab if name.isascii() and name.isalpha()), key=vocab.get)

    def add(promises):
        first = vocab[token]
        learned = promises["bands"].pop()
        promises["bands"] += [
            {**learned, "last": first - 1},
            {"name": "own", "first": first, "last": first, "strength": "pinned"},
            *([{**learned, "name": "rest", "first": first + 1}] if first < learned["last"] else []),
        ]
        promises["tokens"].append({"id": first, "token": token, "strength": "pinned", "band": "own"})

    said, added = release(promise(add), cppmill, tmp_path)
    assert f"{token!r}, id {vocab[token]}, is no token of" in said
    assert not added


BANDS = {
    "strength of a band": lambda bands: bands[1].update(strength="atomic"),
    "reserve that is promised": lambda bands: bands[-2].update(strength="pinned"),
    "learned tokens that are promised": lambda bands: bands[-1].update(strength="pinned"),
    "no learned tokens": lambda bands: bands.pop(),
}


@pytest.mark.parametrize("name", BANDS)
def test_a_manifest_with_bands_of_no_build_is_not_released(name, promise, cppmill, tmp_path):
    said, added = release(promise(lambda promises: BANDS[name](promises["bands"])), cppmill, tmp_path)
    assert "no build writes the band" in said or "its last ids are in no band" in said
    assert added == ""


def test_a_name_that_the_build_kept_and_the_manifest_leaves_out_is_missed_by_a_release(promise, cppmill, tmp_path):
    found = []

    def drop(promises):
        found.append(next(token for token in promises["tokens"] if token["band"] == "domain"))
        promises["tokens"].remove(found[0])

    said, added = release(promise(drop), cppmill, tmp_path)
    assert f"id {found[0]['id']} is {found[0]['token']!r}, and its manifest leaves it out of the fixed tokens" in said
    assert not added


def test_a_fixed_token_that_the_manifest_leaves_out_is_missed_by_a_release(promise, cppmill, tmp_path):
    def drop(promises):
        promises["tokens"] = [token for token in promises["tokens"] if token["id"] != 66]

    said, added = release(promise(drop), cppmill, tmp_path)
    assert "id 66 is 'constexpr', and its manifest leaves it out of the fixed tokens" in said
    assert not added


def test_what_a_build_writes_agrees(directory):
    assert cppmill_core.load_tokenizer(directory).vocab_size == 12288


def test_no_command_takes_moved_ids(change, run, cppmill, tmp_path):
    moved = change(swap_fixed)
    vocabulary = tmp_path / "vocab"
    cppmill("vocab", "init", vocabulary)
    before = (vocabulary / "ids.lock").read_bytes()
    commands = [
        ("run", run.sources / "arrow", "--out", tmp_path / "out", "--tokenizer", moved),
        ("vocab", "diff", run.out / "tokenizer", moved),
        ("vocab", "release", "9.9", "--vocab", vocabulary, "--tokenizer", moved),
    ]
    for command in commands:
        done = cppmill(*command, check=False)
        assert done.returncode in (1, 2)
        assert "id 100 is" in " ".join(done.stderr.split())
    assert (vocabulary / "ids.lock").read_bytes() == before


def test_a_release_takes_no_directory_that_a_run_refuses(directory, cppmill, tmp_path):
    """Two learned tokens have each other's ids, so the table beside `tokenizer.json` is of another tokenizer."""
    rules, manifest = (json.loads((directory / name).read_bytes()) for name in ("tokenizer.json", "manifest.json"))
    last = manifest["vocab_size"] - 1
    swap(rules["model"]["vocab"], *(name_of(rules["model"]["vocab"], id_) for id_ in (last, last - 1)))
    (directory / "tokenizer.json").write_text(json.dumps(rules, ensure_ascii=False), "utf-8")
    manifest["files"]["tokenizer.json"] = hashlib.sha256((directory / "tokenizer.json").read_bytes()).hexdigest()
    (directory / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False), "utf-8")
    vocabulary = tmp_path / "vocab"
    cppmill("vocab", "init", vocabulary)
    before = (vocabulary / "ids.lock").read_bytes()
    done = cppmill("vocab", "release", "9.9", "--vocab", vocabulary, "--tokenizer", directory, check=False)
    assert done.returncode == 2
    assert "vocab.tsv: not the table of the tokenizer's ids" in " ".join(done.stderr.split())
    assert (vocabulary / "ids.lock").read_bytes() == before


PLACES = ("tokens", "reserved", "roles", "files", "format", "vocab_size", "kind", "digest")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.fuzz
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PLACES), ANYTHING)
def test_a_manifest_with_anything_in_it_is_refused_or_loaded(directory, place, value):
    file = directory / "manifest.json"
    promises = json.loads(file.read_bytes())
    try:
        file.write_text(json.dumps({**promises, place: value}))
        cppmill_core.load_tokenizer(directory)
    except (cppmill_core.CoreError, FileNotFoundError) as error:
        assert str(error)
    finally:
        file.write_text(json.dumps(promises))


OF_NO_BUILD = {
    "another file": (
        lambda promises: promises["files"].update({"code.py": hashlib.sha256(b"").hexdigest()}),
        "code.py",
    ),
    "a key of a token": (lambda promises: promises["tokens"][100].update(note=1), "has the key 'note'"),
    "a range backwards": (lambda promises: promises["reserved"].append([9, 5]), r"range \[9, 5\] is out of place"),
    "ranges again and again": (lambda promises: promises.update(reserved=promises["reserved"] * 50_000), "of place"),
    "a range beyond": (lambda promises: promises["reserved"].append([12288, 2**32 - 1]), "4294967295] is out of place"),
}


@pytest.mark.parametrize("name", OF_NO_BUILD)
def test_what_no_build_writes_in_a_manifest_is_named(directory, promise, name):
    function, message = OF_NO_BUILD[name]
    (directory / "code.py").write_text("")
    with pytest.raises(cppmill_core.CoreError, match=message):
        cppmill_core.load_tokenizer(promise(function))
