"""Trains a SentencePiece vocabulary from the scan's word counts: the control tokens at their pinned ids, then bytes.

The words of the pre-token pattern are the trainer's sentences, in its own format of counted words. Its rules for white
space (a space only at the beginning of a piece, no tabs and newlines) would cut these words differently. So while it
trains, four characters that no text has (Unicode's noncharacters) replace space, tab, newline and return. In the pieces
of the finished model a space is U+2581, and the others are themselves. No piece crosses the border of a word.

The bytes of the model depend only on the counts and the size. The words are sorted, and the trainer has a fixed number
of threads, because sums of floating-point numbers depend on it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
from cppmill_core.manifests import MANIFEST_FORMAT, SENTENCEPIECE, ranges
from cppmill_core.sentencepiece import MODEL, SPACE, lossy_properties
from cppmill_core.sentencepiece.proto import Model, Piece, PieceType, read_model, rewrite_pieces
from sentencepiece import SentencePieceTrainer

from schemas.digests import canonical_json, sha256_file
from schemas.errors import VocabularyConfigError
from schemas.options import BuildOptions
from schemas.tables import WORDS
from tokenizer_build.artifact import MANIFEST_JSON, VOCAB_TSV, model_table
from tokenizer_build.bands import BANDS, Strength, reserved_name
from tokenizer_build.findings import FINDINGS_MD
from tokenizer_build.lint import load_vocabulary, text_vocabulary

MAX_PIECE_CHARACTERS = 64
"""No piece is longer; unigram's time grows with it."""

_CONTROL = BANDS[0]
_SPECIAL = {"unk": "<UNK>", "bos": "<BOS>", "eos": "<EOS>", "pad": "<PAD>"}
_TRAINER_THREADS = 4
_CHARACTER_COVERAGE = 0.9999
_MAX_WORD_BYTES = 4192
_STAND_INS = {" ": "\ufdd0", "\t": "\ufdd1", "\n": "\ufdd2", "\r": "\ufdd3"}
_TRAINED = str.maketrans(_STAND_INS)
_WRITTEN = str.maketrans({stand_in: SPACE if mark == " " else mark for mark, stand_in in _STAND_INS.items()})
_UNTRAINABLE = re.compile("[\0\u2581\u2585" + "".join(_STAND_INS.values()) + "]")
"""Characters that the trainer keeps for itself: the end, the space, the unknown one; and the substitutes."""

_TOO_HIGH = re.compile(r"Vocabulary size too high .*<= (\d+)")
_TOO_LOW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


@dataclass
class _Sentences:
    """The words as the trainer takes them, and how many it cannot."""

    words: pa.Table
    taken: int = 0
    left_out: int = 0

    def lines(self) -> Iterator[str]:
        """Yield `word TAB count`."""
        for batch in self.words.to_batches():
            columns: list[list[Any]] = [batch[name].to_pylist() for name in ("word", "count")]
            for word, count in zip(*columns, strict=True):
                text = _trainable(word)
                if text is None:
                    self.left_out += 1
                else:
                    self.taken += 1
                    yield f"{text}\t{count}"


def build_sentencepiece(
    words: Iterable[pa.RecordBatch], *, vocabulary_dir: Path, options: BuildOptions, pattern: str, out: Path
) -> tuple[str, ...]:
    """Train a SentencePiece tokenizer and write its directory.

    Args:
        words: Word counts (`schemas.tables.WORDS`), in any order; the counts of a word that recurs add up.
        vocabulary_dir: Folder with the bands' files and the lock; the control tokens are taken from it.
        options: Kind, size and profile.
        pattern: Name of the pattern that cut the words.
        out: An existing, empty folder.

    Returns:
        What the end of the stage says: a few lines.

    Raises:
        VocabularyConfigError: If the vocabulary is broken, or the size does not fit the text; both sizes are named.
    """
    names = _control_names(vocabulary_dir, options)
    sentences = _Sentences(_sorted_words(words))
    data = _train(sentences, names, options)
    model = read_model(data, where=MODEL)
    _check(model, names, options)
    (out / MODEL).write_bytes(data)
    findings = _findings(model, sentences, options)
    (out / FINDINGS_MD).write_text("".join(f"{line}\n" for line in findings), encoding="utf-8", newline="")
    (out / VOCAB_TSV).write_bytes(model_table(model))
    (out / MANIFEST_JSON).write_bytes(canonical_json(_manifest(names, options, pattern, out)))
    return tuple(findings)


def make_model_manifest(vocabulary_dir: Path, options: BuildOptions, pattern: str, folder: Path) -> dict[str, Any]:
    """Return the manifest of a model that was trained.

    Args:
        vocabulary_dir: Folder with the bands' files and the lock.
        options: Kind, size and profile.
        pattern: Name of the pattern that cut the words.
        folder: Where the model is.
    """
    return _manifest(_control_names(vocabulary_dir, options), options, pattern, folder)


def trainer_version() -> str:
    """Return the version of the trainer, on which the bytes of a model depend."""
    return metadata.version("sentencepiece")


def _control_names(vocabulary_dir: Path, options: BuildOptions) -> dict[int, str]:
    """Return the name of every id of the control band: its token, or the name of a reserved id.

    A vocabulary for text has the unknown piece, which every model has, and the control tokens that the options name.
    """
    if options.specials is not None:
        control = text_vocabulary(vocabulary_dir, [_SPECIAL["unk"], *options.specials])[0].tokens
        return {token.id: token.token for token in control}
    vocabulary, _ = load_vocabulary(vocabulary_dir)
    tokens = {token.id: token.token for token in vocabulary.tokens if token.strength is Strength.CONTROL}
    return {id_: tokens.get(id_, reserved_name(id_)) for id_ in range(_CONTROL.first, _CONTROL.last + 1)}


def _sorted_words(words: Iterable[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(list(words), schema=WORDS)
    summed = table.group_by("word", use_threads=False).aggregate([("count", "sum")])
    return summed.rename_columns(["word", "count"]).sort_by("word")


def _trainable(word: bytes) -> str | None:
    """Return a word as the trainer takes it, None if it cannot."""
    if len(word) > _MAX_WORD_BYTES:
        return None
    try:
        text = word.decode()
    except UnicodeDecodeError:
        return None
    return None if _UNTRAINABLE.search(text) else text.translate(_TRAINED)


def _train(sentences: _Sentences, names: dict[int, str], options: BuildOptions) -> bytes:
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=sentences.lines(),
            model_writer=model,
            input_format="tsv",
            model_type=options.kind.removeprefix("sentencepiece-"),
            vocab_size=options.vocab_size,
            hard_vocab_limit=True,
            byte_fallback=True,
            character_coverage=_CHARACTER_COVERAGE,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            split_by_whitespace=False,
            split_by_unicode_script=False,
            split_by_number=False,
            max_sentencepiece_length=MAX_PIECE_CHARACTERS,
            max_sentence_length=4 * _MAX_WORD_BYTES,
            num_threads=_TRAINER_THREADS,
            control_symbols=[name for name in names.values() if name not in _SPECIAL.values()],
            minloglevel=2,
            **_special_pieces(names),
        )
    except RuntimeError as error:
        raise VocabularyConfigError(_in_vocabulary_sizes(str(error), sentences, options)) from error
    return rewrite_pieces(model.getvalue(), _written)


def _special_pieces(names: dict[int, str]) -> dict[str, Any]:
    """Return the trainer's options for the control tokens that it has options for; the others follow in order."""
    ids = dict.fromkeys(_SPECIAL.values(), -1) | {name: id_ for id_, name in names.items()}
    return {
        **{f"{role}_id": ids[name] for role, name in _SPECIAL.items()},
        **{f"{role}_piece": name for role, name in _SPECIAL.items()},
    }


def _written(_: int, piece: Piece) -> Piece:
    return replace(piece, text=piece.text.translate(_WRITTEN))


def _in_vocabulary_sizes(message: str, sentences: _Sentences, options: BuildOptions) -> str:
    """Return the trainer's message with the requested size and a size that would do."""
    asked = f"vocab_size = {options.vocab_size}"
    too_high, too_low = _TOO_HIGH.search(message), _TOO_LOW.search(message)
    if too_high is not None:
        return f"{asked}: the text fills only {too_high[1]} ids; ask for {too_high[1]}, or give more text"
    if too_low is not None:
        return f"{asked}: too small; control tokens, bytes and the characters of the text alone need {too_low[1]}"
    if not sentences.taken:
        return f"{asked}: there are no words to learn from: give text"
    return f"{asked}: SentencePiece's trainer failed: {message}"


def _check(model: Model, names: dict[int, str], options: BuildOptions) -> None:
    """Refuse a model that is not the requested one.

    Raises:
        VocabularyConfigError: If a size, a control token or a property is another one.
    """
    if len(model.pieces) != options.vocab_size:
        raise VocabularyConfigError(f"vocab_size = {options.vocab_size}: the model has {len(model.pieces)} pieces")
    wrong = [
        f"id {id_} is {model.pieces[id_].text}, not {name}"
        for id_, name in names.items()
        if model.pieces[id_].text != name
    ]
    unsilent = [id_ for id_ in names if model.pieces[id_].type not in (PieceType.CONTROL, PieceType.UNKNOWN)]
    if wrong or unsilent or lossy_properties(model):
        raise VocabularyConfigError(f"SentencePiece made another model than the requested one: {[*wrong, *unsilent]}")


def _findings(model: Model, sentences: _Sentences, options: BuildOptions) -> list[str]:
    learned = sum(piece.type is PieceType.NORMAL for piece in model.pieces)
    control = len(model.pieces) - learned - 256
    lines = [
        f"{options.kind}, by SentencePiece {trainer_version()}: {len(model.pieces):,} ids, of which {learned:,} pieces "
        f"learned from {sentences.taken:,} words, 256 bytes, {control} control and reserved."
    ]
    if sentences.left_out:
        lines.append(
            f"{sentences.left_out:,} words were left out of training: not UTF-8, too long, or with U+2581, U+2585."
        )
    return lines


def _manifest(names: dict[int, str], options: BuildOptions, pattern: str, out: Path) -> dict[str, Any]:
    tokens = {id_: name for id_, name in names.items() if name != reserved_name(id_)}
    return {
        "format": MANIFEST_FORMAT,
        "kind": SENTENCEPIECE,
        "profile": options.profile,
        "pattern": pattern,
        "trainer": f"{options.kind} {trainer_version()}",
        "vocab_size": options.vocab_size,
        "files": {MODEL: sha256_file(out / MODEL)},
        "tokens": [
            {"id": id_, "token": name, "strength": _CONTROL.strength.value, "band": _CONTROL.name}
            for id_, name in tokens.items()
        ],
        "reserved": ranges(names.keys() - tokens.keys()),
    }
