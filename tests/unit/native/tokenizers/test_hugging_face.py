"""Byte-level BPE of other programs: ids equal those of `tokenizers`, any bytes encode, lossy ones are refused."""

import hashlib
import json
import pickle
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import AnyTokenizer, CoreError, Tokenizer, hugging_face, load_tokenizer, open_any
from cppmill_core.adoption import find_source, program_of, write_directory
from cppmill_core.byte_alphabet import CHARACTERS
from cppmill_core.manifests import BOS, EOS
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Peer

GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HOSTILE = [
    b"",
    bytes(range(256)),
    b"\t\t\r\n \t\x00 \x00  ",
    b"\xef\xbb\xbfint x;\r\n",
    b"<|endoftext|><|begin|>",
    "a\u2581 \ufffd\u00e9\U0001f600".encode(),
    b"\xe2\x96",
    b"\xf0\xe2\x96\x81",
    b"x" * 70_000,
    b"  \n x\n\n   ",
]


def byte_level(steps: str) -> Any:
    """Return a pre-tokenizer: GPT-2's, GPT-4's, or one that the native core does not know."""
    if steps == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    split = pre_tokenizers.Split(Regex(GPT4 if steps == "gpt4" else rf"#+|{GPT4}"), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


@pytest.fixture(scope="module", params=["gpt2", "gpt4", "unknown"])
def peer(request: pytest.FixtureRequest, headers: list[bytes]) -> Peer:
    """A tokenizer as other programs train it."""
    made = Peer(models.BPE())
    made.pre_tokenizer, made.decoder = byte_level(request.param), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|begin|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator((text.decode(errors="replace") for text in headers[::4]), trainer)
    return made


@pytest.fixture(scope="module")
def saved(peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer as `transformers` saves it."""
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("saved")
    made = PreTrainedTokenizerFast(tokenizer_object=peer, bos_token="<|begin|>", eos_token="<|endoftext|>")
    made.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def directory(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adopted")
    write_directory(find_source(saved), folder)
    return folder


@pytest.fixture(scope="module")
def adopted(directory: Path) -> AnyTokenizer:
    return load_tokenizer(directory)


def test_text_has_the_ids_that_tokenizers_gives_it(
    adopted: AnyTokenizer, peer: Peer, headers: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text.decode() for text in headers[::2] if text.isascii()] + ["", "é \n\n x  \n y", "a" * 1000]
    expected = [encoding.ids for encoding in peer.encode_batch(texts, add_special_tokens=False)]
    assert len(texts) > 30
    assert adopted.encode_batch(texts, 2).to_pylist() == expected
    monkeypatch.setattr(hugging_face, "_WINDOW", 5000)
    monkeypatch.setattr(hugging_face, "_MARGIN", 100)
    assert adopted.encode_batch(texts).to_pylist() == expected


def test_the_native_core_runs_what_it_knows_and_the_manifest_is_the_same(
    adopted: AnyTokenizer, directory: Path, request: pytest.FixtureRequest
) -> None:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    assert manifest["run"] == "tokenizers"
    if isinstance(adopted, Tokenizer):
        assert adopted.pattern in ("gpt2", "cl100k")
        with pytest.raises(cppmill_core.InvalidInputError, match="what later text changes is not known"):
            adopted.stable_prefix([1])
    else:
        assert program_of(adopted).startswith("tokenizers, because the native core does not know it: `pre_tokenizer`")


def test_headers_and_hostile_bytes_come_back(adopted: AnyTokenizer, headers: list[bytes]) -> None:
    documents = [*HOSTILE, *headers]
    ends = {"bos": adopted.control_id("<BOS>"), "eos": adopted.control_id("EOS")}
    ids = adopted.encode_batch(pa.array(documents, pa.binary()), 2, **ends)
    assert adopted.decode_batch(ids, 2, **ends).to_pylist() == documents


@given(data=st.one_of(st.binary(), st.text().map(str.encode), st.text(" \n\t'sx<|>").map(str.encode)))
def test_any_bytes_come_back(adopted: AnyTokenizer, data: bytes) -> None:
    assert adopted.decode(adopted.encode(data)) == data


def test_the_ends_are_those_of_its_configuration(adopted: AnyTokenizer, peer: Peer) -> None:
    assert adopted.control_id("<BOS>") == adopted.control_id("<|begin|>") == peer.token_to_id("<|begin|>")
    assert adopted.control_id("<EOS>") == peer.token_to_id("<|endoftext|>")


def test_special_tokens_in_text_are_text_and_counted(adopted: AnyTokenizer) -> None:
    text = b"<|begin|>"
    assert adopted.control_id("<BOS>") not in adopted.encode(text).to_pylist()
    assert adopted.count_control([text]) == {"<|begin|>": 1}


def test_it_is_pickled_as_path_and_digest(adopted: AnyTokenizer) -> None:
    assert pickle.loads(pickle.dumps(adopted)).encode(b"int x;").equals(adopted.encode(b"int x;"))


def test_it_opens_without_a_manifest(adopted: AnyTokenizer, saved: Path) -> None:
    for place in (saved, saved / "tokenizer.json"):
        opened = open_any(place)
        assert opened.encode(b"int main() {}").equals(adopted.encode(b"int main() {}"))
    assert not (saved / "manifest.json").exists()


def test_other_control_tokens_can_be_the_ends(saved: Path, tmp_path: Path) -> None:
    source = find_source(saved)
    write_directory(source.with_ends({BOS: "<|endoftext|>", EOS: None}), tmp_path)
    made = load_tokenizer(tmp_path)
    assert made.control_id("<BOS>") == made.control_id("<EOS>")
    with pytest.raises(cppmill_core.InvalidInputError, match=r"<s>: no control token .* it has <\|endoftext\|>"):
        source.with_ends({BOS: "<s>"})


def test_a_tokenizer_of_ours_without_its_manifest_is_run_by_the_native_core(
    words_directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "tokenizer.json").write_bytes((words_directory / "tokenizer.json").read_bytes())
    (tmp_path / "out").mkdir()
    write_directory(find_source(tmp_path / "source"), tmp_path / "out")
    made = load_tokenizer(tmp_path / "out")
    assert isinstance(made, Tokenizer)
    text = b"std::vector<int> v; // \xff"
    assert made.encode(text).equals(Tokenizer.from_dir(words_directory).encode(text))


@pytest.fixture(scope="module")
def words_directory(headers: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of the native core, with the pattern of words."""
    path = tmp_path_factory.mktemp("words")
    counter = cppmill_core.WordCounter("cpp-words-1")
    counter.add(pa.record_batch({"content": pa.array(headers[::5], pa.binary())}))
    merges = cppmill_core.train_bpe(
        counter.finish().read_all().to_batches(),
        seeds=pa.record_batch({"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())}),
        vocab_tokens=500,
        forbidden=[b"<BOS>", b"<EOS>"],
    )
    letters = [chr(byte) for byte in range(256)]
    spell = {letter: CHARACTERS[ord(letter)] for letter in letters}
    pairs = [
        tuple("".join(spell[chr(byte)] for byte in row[side]) for side in ("left", "right"))
        for row in merges.to_pylist()
    ]
    names = dict.fromkeys(["<BOS>", "<EOS>", *spell.values(), *(left + right for left, right in pairs)])
    made = Peer(models.BPE(vocab={name: id_ for id_, name in enumerate(names)}, merges=pairs))
    split = pre_tokenizers.Split(Regex(cppmill_core.PATTERNS["cpp-words-1"]), "isolated")
    bytes_step = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False, trim_offsets=False)
    made.pre_tokenizer, made.decoder = pre_tokenizers.Sequence([split, bytes_step]), decoders.ByteLevel()
    made.add_special_tokens(["<BOS>", "<EOS>"])
    made.save(str(path / "tokenizer.json"))
    write_directory(find_source(path / "tokenizer.json"), path)
    return path


def changed(peer: Peer, tmp_path: Path, **parts: Any) -> Path:
    made = Peer.from_str(peer.to_str())
    for name, value in parts.items():
        setattr(made, name, value)
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"normalizer": normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])}, "it normalises text"),
        ({"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)}, "add_prefix_space = true"),
        ({"pre_tokenizer": pre_tokenizers.Whitespace()}, "it has no ByteLevel pre-tokenizer"),
        ({"model": models.BPE(vocab={"a": 0}, merges=[])}, "it has no token for some byte"),
        ({"model": models.WordPiece(vocab={"a": 0}, unk_token="a")}, "its model is WordPiece, not BPE"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_rule_that_loses_text_is_named(peer: Peer, parts: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=said):
        find_source(changed(peer, tmp_path, **parts))


def adopt(folder: Path, rules: Any, *, allow_lossy: bool = False) -> AnyTokenizer:
    """Adopt the rules of a tokenizer.json."""
    (folder / "in.json").write_text(json.dumps(rules))
    (folder / "out").mkdir()
    write_directory(find_source(folder / "in.json", allow_lossy=allow_lossy), folder / "out")
    return load_tokenizer(folder / "out")


def test_the_normaliser_nfc_is_left_out(peer: Peer, tmp_path: Path) -> None:
    made = Peer.from_str(peer.to_str())
    made.normalizer = normalizers.NFC()  # type: ignore[assignment]
    adopted = adopt(tmp_path, json.loads(made.to_str()))
    composed, decomposed = "caf\u00e9 \u212b", "cafe\u0301 \u212b"
    assert adopted.encode(composed[:4]).to_pylist() == made.encode(decomposed[:5], add_special_tokens=False).ids
    assert adopted.decode(adopted.encode(decomposed)).decode() == decomposed
    assert find_source(tmp_path / "in.json").leaves_out_nfc and not adopted.is_lossy


NORMALIZED = [
    AddedToken("<K>", normalized=False),
    AddedToken("<\u00e5", normalized=True),
    AddedToken("K\u0323", normalized=True),
    AddedToken("<<", normalized=False),
]
MARKS = ["\u0301", "\u0323", "\u0338", "\u0344", "\u11a8", "\u1161", "\u0d3e"]
"""Marks, and parts of syllables, that join what is before them."""
CHANGING = [
    *MARKS,
    "a\u030a",
    "e",
    "\u00e9",
    "\u212b",
    "\u1100",
    "\uac00",
    "\u0d46",
    "\u2000",
    "\u037e",
    "\u0958",
    "\U0001d15e",
]
CHANGING += ["<K>", "<\u212a>", "<", "K", " ", "\n", "<|endoftext|>"]


@given(pieces=st.lists(st.sampled_from(CHANGING)))
def test_a_lossy_one_puts_text_in_nfc_between_added_tokens_as_tokenizers_does(pieces: list[str]) -> None:
    made, adopted = with_nfc()
    text = "".join(pieces)
    ids = adopted.encode_batch([text, "plain"])
    assert ids[0].as_py() == made.encode(text, add_special_tokens=False).ids
    assert adopted.decode_batch(ids).to_pylist()[1] == b"plain"


def test_the_nfc_of_every_character_is_that_of_tokenizers() -> None:
    _, adopted = with_nfc(has_added=False)
    assert adopted.is_lossy
    letters = [chr(code) for code in range(1 << 16) if not 0xD800 <= code < 0xE000]
    letters += [chr(code) for code in range(1 << 16, 0x30000)]
    texts = [f"e{letter}\u0323 {letter}\u0301" for letter in letters]
    nfc = normalizers.NFC()
    expected = [nfc.normalize_str(text).encode() for text in texts]
    assert sum(text.encode() != put for text, put in zip(texts, expected, strict=True)) > 2000
    assert adopted.decode_batch(adopted.encode_batch(texts)).to_pylist() == expected


def test_a_lossy_one_keeps_bytes_that_are_not_utf8() -> None:
    _, adopted = with_nfc()
    assert adopted.decode(adopted.encode(b"\xffe\xcc\x81\xc3")) == "\u00e9".encode().join([b"\xff", b"\xc3"])


@lru_cache(maxsize=2)
def with_nfc(*, has_added: bool = True) -> tuple[Peer, AnyTokenizer]:
    """A tokenizer of bytes alone with added tokens and NFC, and the same adopted as lossy."""
    made = bytes_alone(NORMALIZED if has_added else [])
    made.normalizer = normalizers.NFC()  # type: ignore[assignment]
    made = Peer.from_str(made.to_str())
    made.encode_special_tokens = True
    with tempfile.TemporaryDirectory() as folder:
        return made, adopt(Path(folder), json.loads(made.to_str()), allow_lossy=True)


def test_only_the_native_core_puts_text_in_nfc(peer: Peer, tmp_path: Path) -> None:
    made = Peer.from_str(peer.to_str())
    made.normalizer = normalizers.Sequence([normalizers.NFC()])  # type: ignore[assignment]
    made.pre_tokenizer = byte_level("unknown")
    with pytest.raises(
        cppmill_core.InvalidInputError, match="only the native core puts text in NFC, and it does not know"
    ):
        adopt(tmp_path, json.loads(made.to_str()), allow_lossy=True)


def test_a_manifest_that_says_that_text_is_lost_is_refused_without_a_normaliser(peer: Peer, tmp_path: Path) -> None:
    source = find_source(changed(peer, tmp_path))
    (tmp_path / "out").mkdir()
    write_directory(replace(source, manifest={**source.manifest, "lossy": ["it puts text in NFC"]}), tmp_path / "out")
    with pytest.raises(cppmill_core.InvalidInputError, match="no normalizer loses any"):
        Tokenizer.from_dir(tmp_path / "out")


ADDED = [
    AddedToken("<tool>", normalized=False),
    AddedToken("<tool>>", normalized=True),
    AddedToken(">x", normalized=False),
    AddedToken("end|><", normalized=False),
    AddedToken("  ", normalized=True),
]


@given(pieces=st.lists(st.sampled_from(["<tool>", ">", ">x", "<|endoftext|>", "<", "end|>", "  ", " ", "a", "\n"])))
def test_added_tokens_that_are_not_special_are_cut_out_of_text(pieces: list[str]) -> None:
    made, adopted = with_added()
    text = "".join(pieces)
    ids = adopted.encode(text)
    assert ids.to_pylist() == made.encode(text, add_special_tokens=False).ids
    assert adopted.decode(ids).decode() == text


UNKNOWN_TO_THE_CORE = [*ADDED, AddedToken("b", single_word=True), AddedToken("ab", single_word=True, normalized=True)]


@given(
    pieces=st.lists(
        st.sampled_from(["<tool>", ">", ">x", "<|endoftext|>", "<", "end|>", "  ", " ", "a", "b", "ab", "é", "_", "\n"])
    )
)
def test_added_tokens_are_cut_out_of_text_by_tokenizers_too(pieces: list[str]) -> None:
    made, adopted = with_added("unknown")
    text = "".join(pieces)
    ids = adopted.encode(text)
    assert ids.to_pylist() == made.encode(text, add_special_tokens=False).ids
    assert adopted.decode(ids).decode() == text


def test_documents_with_added_tokens_and_other_bytes_come_back() -> None:
    made, adopted = with_added("unknown")
    texts = ["b", "", "b b", "<tool>", "a<tool>> b", "  "]
    documents = [b"\xff<tool>\xffb\xe9b \xff", *map(str.encode, texts)]
    ids = adopted.encode_batch(pa.array(documents, pa.binary()), 2)
    assert program_of(adopted).startswith("tokenizers, because")
    assert adopted.decode_batch(ids).to_pylist() == documents
    expected = [encoding.ids for encoding in made.encode_batch(texts, add_special_tokens=False)]
    assert ids.to_pylist()[1:] == expected


@cache
def with_added(steps: str = "gpt4") -> tuple[Peer, AnyTokenizer]:
    """A tokenizer of bytes alone with added tokens, and the same adopted."""
    made = bytes_alone(ADDED if steps == "gpt4" else UNKNOWN_TO_THE_CORE)
    made.pre_tokenizer = byte_level(steps)
    with tempfile.TemporaryDirectory() as folder:
        return made, adopt(Path(folder), json.loads(made.to_str()))


def bytes_alone(added: list[AddedToken]) -> Peer:
    """A tokenizer without merges, with added tokens."""
    made = Peer(models.BPE(vocab={character: id_ for id_, character in enumerate(CHARACTERS)}, merges=[]))
    made.pre_tokenizer, made.decoder = byte_level("gpt4"), decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    made.add_tokens(added)
    made.encode_special_tokens = True
    return made


def test_words_that_are_tokens_are_not_merged_with_ignore_merges(peer: Peer, tmp_path: Path) -> None:
    rules = json.loads(peer.to_str())
    rules["model"]["ignore_merges"] = True
    rules["model"]["vocab"] |= {"Ġqzqzq": 3000, "X" * 90: 3001}
    made, texts = Peer.from_str(json.dumps(rules)), ["a qzqzq qzqzqz qzqzq", "X" * 90, "X" * 91]
    adopted = adopt(tmp_path, rules)
    assert adopted.encode_batch(texts).to_pylist() == [
        encoding.ids for encoding in made.encode_batch(texts, add_special_tokens=False)
    ]
    assert 3000 in adopted.encode(texts[0]).to_pylist() and adopted.encode(texts[1]).to_pylist() == [3001]


@pytest.mark.parametrize("steps", ["gpt4", "unknown"])
def test_words_that_are_special_tokens_are_text_with_ignore_merges(steps: str, tmp_path: Path) -> None:
    made = bytes_alone([])
    made.pre_tokenizer = byte_level(steps)
    rules = json.loads(made.to_str())
    rules["model"] |= {"ignore_merges": True, "vocab": rules["model"]["vocab"] | {"Ġendoftext": 256}}
    (first,) = rules["added_tokens"]
    rules["added_tokens"] = [first | {"id": 257}, first | {"id": 256, "content": "Ġendoftext"}]
    adopted = adopt(tmp_path, rules)
    assert adopted.control_id("Ġendoftext") == 256
    assert adopted.decode(adopted.encode("the endoftext")) == b"the endoftext"


COMMENTS = ["#version a", "#version: 0.2"]


@pytest.mark.parametrize("line", COMMENTS)
def test_a_merge_that_tokenizers_takes_for_a_comment_is_none(line: str, tmp_path: Path) -> None:
    rules = json.loads(bytes_alone([]).to_str())
    words = ["#version"[:length] for length in range(2, 9)]
    for word in [*words, "#versiona"]:
        rules["model"]["vocab"][word] = rules["added_tokens"][0]["id"]
        rules["added_tokens"][0]["id"] += 1
    rules["model"]["merges"] = [f"{word[:-1]} {word[-1]}" for word in words] + [line]
    made, adopted = Peer.from_str(json.dumps(rules)), adopt(tmp_path, rules)
    assert adopted.encode("#versiona").to_pylist() == made.encode("#versiona", add_special_tokens=False).ids


def test_a_file_without_a_version_is_one_of_the_present_version(peer: Peer, tmp_path: Path) -> None:
    rules = json.loads(peer.to_str())
    del rules["version"]
    assert adopt(tmp_path, rules).encode("int x;").to_pylist() == peer.encode("int x;", add_special_tokens=False).ids


def break_id(rules: Any) -> None:
    rules["model"]["vocab"]["!"] = "3"


def break_token(rules: Any) -> None:
    del rules["added_tokens"][0]["special"]


def break_steps(rules: Any) -> None:
    rules["pre_tokenizer"] = ["ByteLevel"]


@pytest.mark.parametrize("change", [break_id, break_token, break_steps])
def test_a_file_that_is_not_laid_out_as_a_tokenizer_is_refused(
    change: Callable[[Any], None], peer: Peer, tmp_path: Path
) -> None:
    rules = json.loads(peer.to_str())
    change(rules)
    (tmp_path / "in.json").write_text(json.dumps(rules))
    with pytest.raises(cppmill_core.CorruptDataError, match=r"in\.json: not laid out as the file of a tokenizer"):
        find_source(tmp_path / "in.json")


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (AddedToken("<t>", lstrip=True), r"'<t>' takes white space beside it \(lstrip = true\)"),
        (AddedToken("\u00e9"), "'\u00e9' is also the token of other bytes"),
    ],
    ids=["lstrip", "other bytes"],
)
def test_an_added_token_that_loses_text_is_refused_by_name(
    peer: Peer, token: AddedToken, said: str, tmp_path: Path
) -> None:
    made = Peer.from_str(peer.to_str())
    made.add_tokens([token])
    with pytest.raises(cppmill_core.InvalidInputError, match=said):
        adopt(tmp_path, json.loads(made.to_str()))


NAMES = st.sampled_from(["<a>", "<b>", "<c>", "!", "a"])


@given(
    added=st.lists(st.tuples(NAMES, st.integers(250, 262), st.booleans()), max_size=4),
    id_of_a=st.sampled_from([64, 259, 300]),
    is_contiguous=st.booleans(),
)
def test_an_added_token_whose_id_tokenizers_changes_or_another_token_has_is_refused(
    added: list[tuple[str, int, bool]], id_of_a: int, *, is_contiguous: bool
) -> None:
    rules = json.loads(bytes_alone([]).to_str())
    rules["model"]["vocab"]["a"] = id_of_a
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    rules["added_tokens"] += [
        {"content": name, "id": 257 + place if is_contiguous else id_, "special": special, **flags}
        for place, (name, id_, special) in enumerate(added)
    ]
    made = Peer.from_str(json.dumps(rules))
    assume(not any(is_special and name in CHARACTERS for name, _, is_special in added))  # those are refused before
    is_changed = any(made.token_to_id(token["content"]) != token["id"] for token in rules["added_tokens"])
    ids = {**rules["model"]["vocab"], **{token["content"]: token["id"] for token in rules["added_tokens"]}}
    is_shared = len(set(ids.values())) < len(ids)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tokenizer.json").write_text(json.dumps(rules))
        if is_changed or is_shared:
            with pytest.raises(
                cppmill_core.InvalidInputError, match="the same id" if is_shared else "but tokenizers gives it"
            ):
                find_source(folder)
        else:
            find_source(folder)


@pytest.mark.parametrize("content", ["{", "[]", '{"model": 1}', '{"model": {"vocab": {}}}'])
def test_a_file_that_is_not_a_tokenizer_is_refused_by_its_path(content: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(cppmill_core.CorruptDataError, match=r"tokenizer\.json: not a tokenizer"):
        find_source(tmp_path)


def test_a_folder_without_a_known_file_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=r"neither a tokenizer\.json nor a \.model file"):
        open_any(tmp_path)


def test_unused_ids_are_reserved_and_have_no_text(peer: Peer, tmp_path: Path) -> None:
    rules = json.loads(peer.to_str())
    rules["model"]["vocab"]["Ġhole"] = 3010
    (tmp_path / "in.json").write_text(json.dumps(rules))
    (tmp_path / "out").mkdir()
    source = find_source(tmp_path / "in.json")
    assert source.manifest["reserved"] == [[3000, 3009]]
    write_directory(source, tmp_path / "out")
    made = load_tokenizer(tmp_path / "out")
    assert (made.vocab_size, made.token_bytes(3005), made.token_bytes(3010)) == (3011, None, b" hole")


def change_rules(change: Callable[[Any], object]) -> Callable[[Any, Any], object]:
    return lambda rules, manifest: change(rules)


def change_manifest(**values: Any) -> Callable[[Any, Any], object]:
    return lambda rules, manifest: manifest.update(values)


FALSE: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "a key": (change_manifest(note=1), "it has the key 'note'"),
    "a key of builds": (change_manifest(profile="other"), "it has the key 'profile'"),
    "no digest": (change_manifest(files={}), r"it has no digest of tokenizer\.json"),
    "another size": (change_manifest(vocab_size=7), "its vocab_size are not"),
    "another role": (change_manifest(roles={"<FIM>": 0}), "<FIM> is no role"),
    "a name of a control token": (lambda rules, manifest: manifest["tokens"][0].update(token="<X>"), "its tokens are"),
    "a key of a control token": (lambda rules, manifest: manifest["tokens"][0].update(note=1), "its tokens are not"),
    "tokens at random": (change_rules(lambda rules: rules["model"].update(dropout=0.1)), "`model.dropout` is set"),
    "no pre-tokenizer": (change_rules(lambda rules: rules.update(pre_tokenizer=None)), "no ByteLevel pre-tokenizer"),
    "no kind of model": (change_rules(lambda rules: rules["model"].update(type=5)), "its model is 5"),
    "merges of three": (change_rules(lambda rules: rules["model"]["merges"].append(list("abc"))), "not a tokenizer"),
    "a huge id": (change_rules(lambda rules: rules["model"]["vocab"].update(zzzzq=2**32 - 1)), "its largest id is"),
    "an id below zero": (change_rules(lambda rules: rules["model"]["vocab"].update(zzzzq=-1)), "."),
    "an id of two tokens": (change_rules(lambda rules: rules["model"]["vocab"].update(zzzzq=300)), "the same id"),
    "an id that is no whole number": (change_rules(lambda rules: rules["model"]["vocab"].update(zzzzq=300.5)), "."),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_directory_with_true_digests_that_adopting_would_not_give_is_not_loaded(
    directory: Path, tmp_path: Path, name: str
) -> None:
    change, message = FALSE[name]
    folder = shutil.copytree(directory, tmp_path / "copy")
    rules, manifest = (json.loads((folder / file).read_bytes()) for file in ("tokenizer.json", "manifest.json"))
    change(rules, manifest)
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    manifest["files"] = {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CoreError, match=message):
        load_tokenizer(folder)
    with pytest.raises(CoreError):
        Tokenizer.from_dir(folder)


@pytest.mark.parametrize(
    ("name", "id_", "message"),
    [
        ("zz", 256, r"id 256 is both"),
        ("zz", 65, r"id 65 is both"),
        ("Ġa", 257, r"merge 1: the token of .* id 257, has other bytes than these"),
    ],
)
def test_the_core_itself_refuses_an_added_token_with_the_id_of_other_text(
    tmp_path: Path, name: str, id_: int, message: str
) -> None:
    rules = json.loads(bytes_alone([]).to_str())
    rules["model"]["vocab"] |= {"ab": 256, "Ġa": 257}
    rules["model"]["merges"] = [["a", "b"], ["Ġ", "a"]]
    rules["added_tokens"][0]["id"] = 258
    adopt(tmp_path, rules)
    folder = tmp_path / "out"
    Tokenizer.from_dir(folder)
    rules["added_tokens"].append({**rules["added_tokens"][0], "content": name, "id": id_, "special": False})
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["tokenizer.json"] = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(cppmill_core.CorruptDataError, match=message):
        Tokenizer.from_dir(folder)


def test_a_device_is_no_tokenizer() -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="/dev/zero: no regular file"):
        open_any("/dev/zero")


def test_a_configuration_without_a_digest_is_refused(directory: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(directory, tmp_path / "copy")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"].pop("tokenizer_config.json", None)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["code.Evil", null]}}')
    with pytest.raises(CoreError, match=r"it has no digest of tokenizer_config\.json, which is there"):
        load_tokenizer(folder)


def test_a_directory_names_no_other_files(directory: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(directory, tmp_path / "copy")
    (folder / "code.py").write_text("")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["code.py"] = hashlib.sha256(b"").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CoreError, match=r"code\.py is no file of such a tokenizer"):
        load_tokenizer(folder)


def two_names(rules: Any, _: Any) -> None:
    rules["model"]["vocab"]["a"] = rules["model"]["vocab"]["b"]


def empty(rules: Any, _: Any) -> None:
    rules["added_tokens"].append({**rules["added_tokens"][0], "id": len(rules["model"]["vocab"]), "content": ""})
    rules["added_tokens"][-1]["special"] = False


def hide(rules: Any, _: Any) -> None:
    byte = {"id": rules["model"]["vocab"]["a"], "content": "a"}
    rules["added_tokens"].append({**rules["added_tokens"][0], **byte})


def vary(rules: Any, _: Any) -> None:
    rules["model"]["dropout"] = 0.5


def lower(rules: Any, _: Any) -> None:
    rules["normalizer"] = {"type": "Lowercase"}


def beyond(rules: Any, _: Any) -> None:
    rules["model"]["vocab"][max(rules["model"]["vocab"], key=rules["model"]["vocab"].get)] = 99_999


def unused(_: Any, manifest: Any) -> None:
    manifest["vocab_size"] += 1


def role(_: Any, manifest: Any) -> None:
    manifest["roles"]["<PAD>"] = 0


@pytest.mark.parametrize("change", [two_names, empty, hide])
def test_one_whose_text_would_be_another_is_not_adopted(change: Any, peer: Peer, tmp_path: Path) -> None:
    rules = json.loads(peer.to_str())
    change(rules, None)
    (tmp_path / "tokenizer.json").write_text(json.dumps(rules))
    with pytest.raises(cppmill_core.InvalidInputError, match="not a byte-level BPE that gives any text back"):
        find_source(tmp_path)


@pytest.mark.parametrize("change", [two_names, empty, hide, vary, lower, beyond, unused, role])
def test_a_directory_that_adopt_does_not_write_is_refused(change: Any, directory: Path, tmp_path: Path) -> None:
    names = ("tokenizer.json", "manifest.json")
    rules, manifest = (json.loads((directory / name).read_bytes()) for name in names)
    for name in manifest["files"]:
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    change(rules, manifest)
    (tmp_path / names[0]).write_text(json.dumps(rules))
    manifest["files"][names[0]] = hashlib.sha256((tmp_path / names[0]).read_bytes()).hexdigest()
    (tmp_path / names[1]).write_text(json.dumps(manifest))
    with pytest.raises(cppmill_core.CoreError):
        load_tokenizer(tmp_path)
