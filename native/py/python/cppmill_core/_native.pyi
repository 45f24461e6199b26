"""Types of the compiled module."""

import os
from collections.abc import Sequence
from typing import Any, Self, final

import pyarrow as pa

__version__: str

PATTERNS: dict[str, str]
"""The pre-token patterns with a native splitter: name to regular expression, as `tokenizer.json` holds it."""

class CoreError(RuntimeError): ...
class InvalidInputError(CoreError): ...
class CorruptDataError(CoreError): ...
class VocabularyError(CoreError): ...

@final
class Scanner:
    """Counts terms, morphemes, namespaces, statistics and words of C++ documents.

    The counts are sums over documents: the same for any number of threads, order of documents, cut into batches and
    memory. One scanner belongs to one Python thread at a time.

    Args:
        config: JSON text `{"pattern": NAME, "unit_pattern": NAME, "word_partitions": 1, "candidates": [{"term",
            "category", "match"}], "morphemes": [{"morpheme", "position"}]}`; all but the pattern may be left out. With
            a `unit_pattern`, one that cuts units made of the pattern's words, these are counted too. `match` is
            `ident`, `dollar`, `sql_string` or `qualified` (a whole chain of names, `std::move`); `position` is
            `prefix`, `suffix`, `cpp_stem` or `component`.
        threads: how many threads `add` and `finish` use.
        memory_bytes: how much the tables of words, units and identifiers may take, for all threads together. What is
            beyond is written to `spill_dir`. Not in it: the words of one document, the batch that is being counted, the
            rows of the other kinds, about 1 MiB a thread, and about 16 MiB while words are read.
        spill_dir: a folder for temporary files, made when needed. Their names are taken away at once, so that nothing
            stays however the process ends.

    Raises:
        InvalidInputError: a configuration that cannot be used (the message names the entry), or no threads.

    Example:
        >>> scanner = Scanner('{"pattern": "cpp-words-1"}')
        >>> scanner.add(pa.record_batch({"project": ["p"], "content": [b"std::read_all(x);"]}))
        >>> scanner.finish()["namespaces"].to_pylist()
        [{'namespace': 'std', 'project': 'p', 'hits': 1, 'documents': 1}]
    """

    def __new__(
        cls,
        config: str,
        threads: int = 1,
        memory_bytes: int = 2 << 30,
        spill_dir: str | os.PathLike[str] | None = None,
    ) -> Self: ...
    def add(self, documents: pa.RecordBatch) -> None:
        """Count every document of a batch with the columns `project` (string) and `content` (binary), others ignored.

        The GIL is released. Content may be any bytes, up to 4 GiB a document.

        Raises:
            InvalidInputError: a column is missing, has another type or a null; then no document is counted.
            OSError: words have to be written out, and there is no `spill_dir` or it cannot be written. Then the scan is
                lost; begin with a new scanner.
        """

    def finish(self) -> dict[str, Any]:
        """Give the counts of all documents added so far, and start anew.

        Returns:
            `words`: a `pa.RecordBatchReader` of partition (uint16: CRC-32 of the word modulo `word_partitions`), word
            (binary) and count, sorted, in batches of one partition and at most 8 MiB, which are merged as they are
            read. `units`: the same of the units, if the configuration has a `unit_pattern`. The others are a
            `pa.RecordBatch` each: `terms` (term, category, project, hits, documents), `morphemes` (morpheme, position,
            project, hits, documents), `namespaces` (namespace, project, hits, documents) and `statistics` (name,
            value). Counts are uint64; rows are sorted bytewise by the columns before the counts; rows without hits are
            left out, but `statistics` always has every name.

        Raises:
            OSError: what was written out cannot be read, or the scan was lost.
        """

@final
class WordCounter:
    """Counts the words of documents and nothing else, in memory: what training needs, without a scan.

    One counter belongs to one Python thread at a time.

    Args:
        pattern: name of a pattern of `PATTERNS`; one that cuts lines counts lines.
        threads: how many threads `add` and `finish` use. The counts are the same for any number.

    Raises:
        InvalidInputError: no pattern of that name, or no threads.

    Example:
        >>> counter = WordCounter("cpp-words-1")
        >>> counter.add(pa.record_batch({"content": [b"a a b"]}))
        >>> counter.finish().read_all().sort_by("word").to_pylist()
        [{'word': b' a', 'count': 1}, {'word': b' b', 'count': 1}, {'word': b'a', 'count': 1}]
    """

    def __new__(cls, pattern: str, threads: int = 1) -> Self: ...
    def add(self, documents: pa.RecordBatch) -> None:
        """Count every document of a batch with the column `content` (binary), others ignored.

        The GIL is released. Content may be any bytes, up to 4 GiB a document.

        Raises:
            InvalidInputError: the column is missing, has another type or a null; then no document is counted.
        """

    def finish(self) -> pa.RecordBatchReader:
        """Give the counts of all documents added so far, and start anew.

        Returns:
            A reader of word (binary) and count (uint64), each word once, in batches of at most 8 MiB. The order of the
            rows depends on nothing but the words; it is that of their hashes, as sorting them takes longer than
            counting.
        """

@final
class PlatformDetector:
    """Finds which platforms documents are written for, by rules that `configs/platforms.toml` explains.

    Example:
        >>> windows = {"id": 1, "category": "os", "label": "windows", "identifiers": ["_WIN32"]}
        >>> rules = json.dumps({"max_ids": 20, "labels": [windows]})
        >>> documents = pa.record_batch({"path": ["a.h"], "content": [b"#ifdef _WIN32"]})
        >>> PlatformDetector(rules).detect(documents).to_pylist()
        [{'platform_ids': [1], 'platform_info': '{"os":{"windows":["_WIN32"]}}'}]
    """

    def __new__(cls, rules: str) -> Self:
        """Compile rules, the JSON text that `configs.platforms.load_platform_rules` gives.

        Raises:
            InvalidInputError: the text has another form, or one of its rules cannot be used.
        """

    def detect(self, documents: pa.RecordBatch, threads: int = 1) -> pa.RecordBatch:
        """Find the platforms of every document.

        Args:
            documents: Columns `path` (string) and `content` (binary); others do not matter. No nulls.
            threads: How many documents are read at once; the result is the same for any number.

        Returns:
            As many rows, with the columns `platform_ids` (list of uint16, ascending) and `platform_info` (string:
            canonical JSON, category to label to at most 5 pieces of evidence).

        Raises:
            InvalidInputError: a column is missing, has another type or a null, or `threads` is 0.
        """

def lex(data: bytes) -> pa.RecordBatch:
    """Cut `data`, any bytes, into the tokens of C++; their ranges follow one another without a gap.

    The GIL is released.

    Returns:
        One row a token in order: kind (dictionary of strings: whitespace, newline, line_comment, block_comment,
        identifier, number, string, raw_string, char, header_name, punctuator, other; always all of them, in this
        order), start, end (uint64, bytes) and in_directive (bool: from a directive's `#` to the end of its line).

    Example:
        >>> lex(b"x;").to_pylist()[0]
        {'kind': 'identifier', 'start': 0, 'end': 1, 'in_directive': False}
    """

def merge_words(runs: Sequence[pa.RecordBatchReader]) -> pa.RecordBatchReader:
    """Merge sorted runs of words into one, adding up the counts of words that recur.

    Args:
        runs: Readers of word (binary) and count (uint64), other columns ignored, sorted bytewise by word, each word
            once. One batch of each is in memory at a time.

    Returns:
        A reader of word and count, sorted, in batches of at most 8 MiB, which are merged as they are read. It raises
        OSError when a run cannot be read, ArrowInvalid when one is not sorted; the message has the run's number.

    Raises:
        InvalidInputError: a column is missing or of another type.
        CorruptDataError: a run is not sorted at its beginning.

    Example:
        >>> words = pa.record_batch({"word": pa.array([b"a", b"b"]), "count": pa.array([1, 2], pa.uint64())})
        >>> runs = [pa.RecordBatchReader.from_batches(words.schema, [words]) for _ in range(2)]
        >>> merge_words(runs).read_all().to_pydict()
        {'word': [b'a', b'b'], 'count': [2, 4]}
    """

def split(pattern: str, data: bytes) -> pa.BinaryArray:
    """Split `data`, any bytes, into the words of the pattern called `pattern`; joined they are `data`.

    Valid UTF-8 is cut where `tokenizers` cuts it with the pattern's regular expression; text that is not UTF-8 into its
    maximal valid runs, each split by itself, with every invalid byte a word of one byte between them.

    Raises:
        InvalidInputError: no pattern of that name; the message names the known ones.

    Example:
        >>> split("cpp-words-1", b"int x;").to_pylist()
        [b'int', b' x', b';']
    """

def train_bpe(
    words: list[pa.RecordBatch],
    *,
    seeds: pa.RecordBatch,
    vocab_tokens: int,
    forbidden: list[bytes],
    max_token_bytes: int | None = None,
    threads: int = 1,
    units: pa.RecordBatchReader | None = None,
    superword_tokens: int = 0,
    unit_pattern: str | None = None,
    max_superword_words: int | None = None,
    max_superword_bytes: int | None = None,
    max_held_tokens: int | None = None,
) -> pa.RecordBatch:
    """Learn byte-level BPE merges from word counts, after the merges that make each seed one token.

    At last, if superwords are wanted, merges from the counts of larger units, as all merges before cut them.

    Args:
        words: Columns word (binary) and count (uint64), in any order; the counts of equal words add up.
        seeds: Columns token (binary) and atomic (bool): strings that must become one token each. A single byte is one
            already. Atomic ones must be identifiers; no merge joins them to a byte outside `[A-Za-z0-9_]`.
        vocab_tokens: How many new token strings to make: no single byte and no seed; pieces of seeds count.
        forbidden: Strings that no merge may spell: the names of control and reserved ids.
        max_token_bytes: The most bytes a token may have; no bound by default.
        threads: How many threads to use; the result is the same for any number.
        units: Columns word (binary) and count (uint64), in any order: the text cut by `unit_pattern`. Read in batches.
        superword_tokens: How many of `vocab_tokens` to learn from the units.
        unit_pattern: Name of the pattern of the units; must be given with `superword_tokens`.
        max_superword_words: The most words that a token learned from units may have, as the pattern of words cuts it;
            no bound by default.
        max_superword_bytes: The most bytes that it may have; no bound by default.
        max_held_tokens: The most tokens that the distinct words, or units, may have in all as training begins, each of
            about 20 bytes of memory; no bound by default. Past it, words below a count are dropped; units below a count
            are thinned: so many are kept, chosen by their CRC-32, that each stands for that count. Each text must then
            be in one row only.

    Returns:
        One row a merge in rank order: left, right (binary), count (uint64; in phases 0 and 1 that among the seeds) and
        phase (uint8): 0 for seeds inside runs of identifier bytes, 1 for seeds across their borders, 2 for words, 3 for
        superwords. The schema's metadata tells what `max_held_tokens` left out: words_least_count, words_left_out,
        units_least_count, units_left_out; a least count of 1 is nothing.

    Raises:
        VocabularyError: a seed cannot become one token, there are no words or units, or there are too few pairs to fill
            `vocab_tokens`; the message says which, why and what to ask for.
        InvalidInputError: a column is missing or of another type, an atomic seed is no identifier, or the unit pattern
            is missing or unknown.

    Example:
        >>> words = pa.record_batch({"word": pa.array([b"hug", b"pug"]), "count": pa.array([3, 2], pa.uint64())})
        >>> seeds = pa.record_batch({"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())})
        >>> train_bpe([words], seeds=seeds, vocab_tokens=1, forbidden=[])["right"].to_pylist()
        [b'g']
    """

def count_tokens(merges: pa.RecordBatch, texts: pa.RecordBatchReader, *, threads: int = 1) -> pa.RecordBatch:
    """Count the tokens of texts, each encoded by the rank of merges and times its count.

    Args:
        merges: Columns left and right (binary) in rank order, as `train_bpe` gives them.
        texts: Columns word (binary) and count (uint64), as the pattern of the merges cuts them. Read in batches.
        threads: How many threads to use.

    Returns:
        Columns token (binary) and count (uint64): a row for each of the 256 bytes, then one a merge in rank order. A
        count of 0 is a token that the texts never need.

    Raises:
        InvalidInputError: a column is missing or of another type, or a merge joins what is no token before it.

    Example:
        >>> merges = pa.record_batch({"left": pa.array([b"u"]), "right": pa.array([b"g"])})
        >>> texts = pa.table({"word": pa.array([b"hug"]), "count": pa.array([3], pa.uint64())}).to_reader()
        >>> count_tokens(merges, texts).slice(256).to_pylist()
        [{'token': b'ug', 'count': 3}]
    """

@final
class Control:
    """A control token among the parts of `Tokenizer.encode_parts`, by its name with angle brackets or without.

    Values are equal if their names are, and can be hashed and pickled. Whether a tokenizer has such a token is
    seen when it is used.

    Example:
        >>> Control("<FIM_PREFIX>")
        Control('FIM_PREFIX')
        >>> Control("EOS") == Control("<EOS>")
        True
    """

    def __new__(cls, name: str) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def name(self) -> str:
        """The name without angle brackets."""

@final
class Tokenizer:
    """A tokenizer directory, ready to encode any bytes to token ids and to decode them again.

    For valid UTF-8 the ids are those that `tokenizers` gives with the directory's `tokenizer.json` and
    `encode_special_tokens` set: the characters of a control token in text are ordinary text. Other bytes are encoded as
    maximal valid runs, each by itself, and single-byte tokens between them. `decode(encode(data)) == data` for every
    `data`.

    Calls release the GIL and may come from several threads. A long call in the main thread ends within about 0.1 s of
    Ctrl-C, or of another signal whose handler raises. Each thread that encodes keeps a cache of words of up to about
    64 MB; a document of n bytes takes about n / 2 bytes more while it is encoded, and a single word (a run of letters,
    digits or spaces, say) of n bytes up to about 16 n. Superwords (merges learned on lines, the pattern `cpp-lines-1`)
    take a cache of lines too, of up to about 28 MB (with ids of 32 bits 36 MB), and a line of n bytes up to about 35 n.
    The caches stay with the tokenizer, as many as there were threads at once.

    A pickle of a tokenizer is the path of its directory and its digest: reading it loads the directory, which must
    still have that digest.

    Example:
        >>> tokenizer = Tokenizer.from_dir("out/tokenizer")
        >>> tokenizer.decode(tokenizer.encode("int main() {}"))
        b'int main() {}'
    """

    @staticmethod
    def from_dir(path: str | os.PathLike[str], digest: str | None = None) -> Tokenizer:
        """Read a tokenizer directory: `manifest.json` and the files that it names, `tokenizer.json` among them.

        Args:
            path: The folder `tokenizer` of a run, or a copy of it.
            digest: Take no tokenizer but that of this digest, the one that a model was trained with, say.

        Raises:
            OSError: a file cannot be read, or there is no manifest; the message says what to give.
            CorruptDataError: a file is not what its digest in the manifest says, or the files contradict each other; or
                the tokenizer does not have the `digest`.
            InvalidInputError: a newer format, or a pre-token pattern or a setting that the encoder does not know; the
                message names it.
        """

    def encode(self, data: bytes | str) -> pa.Array[Any]:
        """Encode one text to a uint16 array, or uint32 if the vocabulary has more than 65,536 ids.

        Args:
            data: Any bytes, or a str, which is encoded as its UTF-8.

        Raises:
            InvalidInputError: the text has 4 GiB or more, or is a str with lone surrogates.

        Example:
            >>> ids = tokenizer.encode(b"std::vector<int> v;")
            >>> ids.type, tokenizer.decode(ids)
            (DataType(uint16), b'std::vector<int> v;')
        """

    def encode_batch(
        self,
        documents: pa.Array[Any] | pa.ChunkedArray[Any] | Sequence[bytes | str],
        threads: int = 1,
        *,
        bos: int | None = None,
        eos: int | None = None,
    ) -> pa.ListArray[Any]:
        r"""Encode many texts, in order: a list of uint16 for each, or of uint32 as `encode`.

        Args:
            documents: A binary or string array, chunked or not, without nulls, or a sequence of bytes or str.
            threads: How many threads to use at most; the ids do not depend on it.
            bos: An id to put before those of each text, `control_id("<BOS>")` for example.
            eos: An id to put after them.

        Raises:
            InvalidInputError: another type, a null (with its row), a text of 4 GiB or more, more than 2^31 - 1
                tokens, or a `bos` or `eos` that is not below `vocab_size`.

        Example:
            >>> lists = tokenizer.encode_batch(["int x;", b"", "\n"])
            >>> len(lists), lists.type, len(lists[1])
            (3, ListType(list<item: uint16>), 0)
        """

    def encode_files(self, paths: Sequence[str | os.PathLike[str]], threads: int = 1) -> pa.ListArray[Any]:
        """Encode the bytes of files, in order, as `encode_batch` does, without Python objects of them.

        Args:
            paths: Regular files. What they have is not looked at but for their length.
            threads: How many threads read and encode at most. Each has one file in memory at a time.

        Raises:
            OSError: a path that is missing, is a folder or cannot be read; the message names it.
            InvalidInputError: as `encode_batch`, and names the file.

        Example:
            >>> path = pathlib.Path("main.cpp")
            >>> path.write_bytes(b"int main() {}")
            13
            >>> tokenizer.decode_batch(tokenizer.encode_files([path], threads=2)).to_pylist()
            [b'int main() {}']
        """

    def encode_parts(self, parts: Sequence[Control | bytes | str]) -> pa.Array[Any]:
        r"""Encode texts and control tokens, one after another: the one way to put control ids among text.

        Each text is encoded by itself, so that no token crosses the border of two parts. The characters of a control
        token in a text are text.

        Returns:
            An array as that of `encode`.

        Raises:
            InvalidInputError: no control token of that name (the message has similar ones), or a text of 4 GiB or more.
            TypeError: a part that is neither `Control` nor bytes nor str.

        Example:
            >>> ids = tokenizer.encode_parts([Control("FIM_PREFIX"), b"int x = ", Control("FIM_SUFFIX"), b";\n"])
            >>> ids[0].as_py() == tokenizer.control_id("<FIM_PREFIX>")
            True
            >>> tokenizer.decode(ids, skip_control=True)
            b'int x = ;\n'
        """

    def stable_prefix(self, ids: pa.Array[Any] | Sequence[int]) -> int:
        """Return how many leading ids stay whatever text follows: the others are to be given back before a completion.

        For every continuation, `encode(text + continuation)` begins with `ids[:n]`, where `text` is that of the ids
        behind the last control or reserved id; all up to that one stay. Have the model go on from `ids[:n]`, and keep
        what it writes to the bytes of the others ("token healing"). Most often one or two ids are given back.

        It takes about the time of encoding the text. Ids that are not those of their text (that a model has sampled,
        say) are compared with them: no id from the first that differs on is stable.

        Args:
            ids: An integer array, or a sequence of int.

        Raises:
            InvalidInputError: an id that is not below `vocab_size`.

        Example:
            >>> ids = tokenizer.encode("int x = ret")
            >>> stable = tokenizer.stable_prefix(ids)
            >>> tokenizer.encode("int x = return_value;")[:stable] == ids[:stable]
            True
            >>> tokenizer.decode(ids[stable:]).endswith(b" ret")  # what a completion has to begin with
            True
        """

    def byte_offsets(self, ids: pa.Array[Any] | Sequence[int]) -> pa.Int64Array | pa.ListArray[Any]:
        """Return where the bytes of each token begin in their text, and where the last one ends.

        They are exact, as decoding loses nothing. A token need not begin where a character does. Control and reserved
        ids have no bytes.

        Args:
            ids: An integer array or a sequence of int, or a list array of integers.

        Returns:
            int64, one more than there are ids; of a list array a list of these for each list.

        Raises:
            InvalidInputError: an id that is not below `vocab_size`; the message has its place and row.

        Example:
            >>> ids = tokenizer.encode("int x;")
            >>> offsets = tokenizer.byte_offsets(ids).to_pylist()
            >>> offsets[0], offsets[-1], len(offsets) == len(ids) + 1
            (0, 6, True)
        """

    def count(self, data: bytes | str) -> int:
        """Count the ids that `encode` gives, without an array of them.

        Raises:
            InvalidInputError: as `encode`.

        Example:
            >>> tokenizer.count("int main() {}") == len(tokenizer.encode("int main() {}"))
            True
        """

    def count_batch(
        self, documents: pa.Array[Any] | pa.ChunkedArray[Any] | Sequence[bytes | str], threads: int = 1
    ) -> pa.UInt64Array:
        """Count the ids of each text, as `encode_batch` gives them; each thread has those of one text in memory.

        Args:
            documents: A binary or string array, chunked or not, without nulls, or a sequence of bytes or str.
            threads: How many threads to use at most.

        Raises:
            InvalidInputError: as `encode_batch`; the number of all tokens has no bound.

        Example:
            >>> tokenizer.count_batch(["", "x"]).to_pylist()
            [0, 1]
        """

    def decode(self, ids: pa.Array[Any] | Sequence[int], *, skip_control: bool = False) -> bytes:
        r"""Decode ids to the bytes that they stand for.

        Args:
            ids: An integer array, or a sequence of int.
            skip_control: Leave out control and reserved ids instead of refusing them.

        Raises:
            InvalidInputError: an id that is not below `vocab_size`, or a control or reserved one; the message names it.

        Example:
            >>> ids = tokenizer.encode_parts([Control("BOS"), b"\xff\x00", Control("EOS")])
            >>> tokenizer.decode(ids, skip_control=True)
            b'\xff\x00'
        """

    def decode_batch(
        self,
        ids: pa.Array[Any],
        threads: int = 1,
        *,
        bos: int | None = None,
        eos: int | None = None,
        skip_control: bool = False,
    ) -> pa.BinaryArray:
        """Decode each list of ids; the result is a `pa.LargeBinaryArray` if it has 2 GiB or more.

        Args:
            ids: A list array of integers.
            threads: How many threads to use at most.
            bos: The id with which each list must begin; it is left out.
            eos: The id with which each list must end; it is left out.
            skip_control: Leave out control and reserved ids instead of refusing them.

        Raises:
            InvalidInputError: as `decode`, naming the row too; a list without its `bos` or `eos`; or `ids` is no list
                array of integers without nulls.

        Example:
            >>> tokenizer.decode_batch(tokenizer.encode_batch([b"int", b""])).to_pylist()
            [b'int', b'']
        """

    def digest_batch(
        self, ids: pa.Array[Any], threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.RecordBatch:
        """Tell what each list of ids decodes to by its length and digest, without keeping the bytes.

        Args:
            ids: As `decode_batch`, and `threads`, `bos` and `eos` too.
            threads: How many threads to use at most.
            bos: The id with which each list must begin.
            eos: The id with which each list must end.

        Returns:
            Columns num_bytes (uint64) and sha256 (string: lower-case hexadecimal digits), a row a list.

        Raises:
            InvalidInputError: as `decode_batch`.

        Example:
            >>> tokenizer.digest_batch(tokenizer.encode_batch([b""])).to_pylist()
            [{'num_bytes': 0, 'sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}]
        """

    def count_control(self, documents: pa.Array[Any] | pa.ChunkedArray[Any] | Sequence[bytes | str]) -> dict[str, int]:
        """Count the control tokens whose characters stand in the texts.

        Returns:
            Name to occurrences, by id, those that occur.

        Example:
            >>> tokenizer.count_control(["<EOS><EOS>", "<BOS"])
            {'<EOS>': 2}
        """

    def control_id(self, name: str) -> int:
        """Return the id of a control token by its name, `<EOS>` or `EOS` for example.

        Raises:
            InvalidInputError: the tokenizer has no control token of that name; the message has similar ones.
        """

    def token_bytes(self, id: int) -> bytes | None:
        """Return the bytes that an id stands for, None for control and reserved ids.

        Raises:
            InvalidInputError: the id is not below `vocab_size`.

        Example:
            >>> tokenizer.token_bytes(tokenizer.encode("(")[0].as_py())
            b'('
        """

    @property
    def vocab_size(self) -> int:
        """The number of ids; every id is below it."""

    @property
    def digest(self) -> str:
        """The SHA-256 of `manifest.json`, in lower-case hexadecimal digits."""

    @property
    def pattern(self) -> str:
        """The name of the pre-token pattern, a key of `PATTERNS`."""

def corpus_digest_sum(doc_id: pa.Array[Any], project: pa.Array[Any], path: pa.Array[Any], threads: int = 1) -> bytes:
    """Sum the row digests of documents: 32 bytes, a big-endian number modulo 2^256.

    A row's digest is the SHA-256 of its `doc_id` (32 bytes), `project` and `path` (each its length as little-endian
    u32, then UTF-8). The sum does not depend on the order of rows, and sums of parts add up.

    Args:
        doc_id: The SHA-256 of each document, 64 lower-case hexadecimal digits; a string array, as the others.
        project: The documents' projects.
        path: The documents' paths.
        threads: How many threads to use at most.

    Raises:
        InvalidInputError: a wrong type, a null, unequal lengths, or a `doc_id` that is none; names column and row.
    """

def dataset_digest_sum(
    doc_id: pa.Array[Any],
    project: pa.Array[Any],
    path: pa.Array[Any],
    num_bytes: pa.Array[Any],
    token_ids: pa.Array[Any],
    platform_ids: pa.Array[Any],
    threads: int = 1,
) -> bytes:
    """Sum the row digests of a dataset: 32 bytes, a big-endian number modulo 2^256.

    A row's digest is the SHA-256 of what `corpus_digest_sum` takes, then, all little-endian, `num_bytes` (u64), the
    number of token ids (u32), the ids (u32 each), the number of platform ids (u32), the platform ids (u16 each).

    Args:
        doc_id: As `corpus_digest_sum`, and `project` and `path` too.
        project: The documents' projects.
        path: The documents' paths.
        num_bytes: The documents' lengths; uint64.
        token_ids: A list array of unsigned integers.
        platform_ids: A list array of uint16.
        threads: How many threads to use at most.

    Raises:
        InvalidInputError: as `corpus_digest_sum`.
    """
