"""Types of the compiled module.

Arrow data is checked before it is read. Data of a library that cannot check itself (it has no `validate`) is checked as
far as its offsets and views tell; no check can prove that its last offset lies within its buffer.
"""

import os
from collections.abc import Sequence
from typing import Any, Self, final

import pyarrow as pa

__version__: str

PATTERNS: dict[str, str]
"""The pre-token patterns that the native core can split by: name to the regular expression in `tokenizer.json`."""

FOREIGN_PATTERNS: dict[str, list[str]]
"""The pre-tokenizers of other programs that the native core can split by: name to the steps in `tokenizer.json`.

A step is a regular expression, or "Digits".
"""

class CoreError(RuntimeError): ...
class InvalidInputError(CoreError): ...
class CorruptDataError(CoreError): ...
class VocabularyError(CoreError): ...

@final
class Scanner:
    """Counts terms, morphemes, namespaces, statistics and words of C++ documents.

    The counts do not depend on the number of threads, the order of documents, the batches or the memory. Use a scanner
    from one Python thread at a time.

    Args:
        config: JSON text `{"pattern": NAME, "unit_pattern": NAME, "word_partitions": 1, "partition_by_project": false,
            "candidates": [{"term", "category", "match"}], "morphemes": [{"morpheme", "position"}], "families": false}`;
            only the pattern is required. A `unit_pattern` cuts text into lines made of the pattern's words, which are
            then counted too.
            `match` is `ident`, `prefix` (identifiers that begin with it), `dollar`, `sql_string`, `string` (words
            of string literals, and words with dots between them) or `qualified` (a whole chain of names, `std::move`);
            `position` is `prefix`, `suffix`, `cpp_stem` or `component`.
        threads: how many threads `add` and `finish` use.
        memory_bytes: the most memory for the tables of words, lines and identifiers of all threads together; the rest
            goes to `spill_dir`. It does not include the words of one document, the current batch, the rows of the other
            tables, about 1 MiB per thread, and about 16 MiB while words are read.
        spill_dir: a folder for temporary files, made when needed. The files are unlinked at once, so none is left
            however the process ends.

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
        """Count every document of a batch with the columns `project` (string) and `content` (binary).

        Other columns are ignored. The GIL is released. Content may be any bytes, up to 4 GiB per document.

        Raises:
            InvalidInputError: a column is missing, has another type or a null; then no document is counted.
            OSError: words must be written out, but there is no `spill_dir` or it cannot be written. The scan is then
                lost; begin with a new scanner.
        """

    def finish(self) -> dict[str, Any]:
        """Return the counts of all documents added so far, and start anew.

        Returns:
            `words`: a `pa.RecordBatchReader` of partition (uint16: CRC-32 of the word, or with `partition_by_project`
            of the project, modulo `word_partitions`), word (binary) and count, sorted, in batches of one partition and
            at most 8 MiB, which are merged as they are read. `units`: the same for lines, if the configuration has a
            `unit_pattern`. Each other one is a
            `pa.RecordBatch`: `terms` (term, category, project, hits, documents), `morphemes` (morpheme, position,
            project, hits, documents), `namespaces` (namespace, project, hits, documents) and `statistics` (name,
            value). With `families` in the configuration, `families` too (family, hits, documents, names): how
            identifiers in code begin, up to their second component (`cudnn` of `cudnnBackendCreate`) and up to their
            third (`cudnnBackend`); `names` is the most different identifiers of a family in one document. Counts are
            uint64; rows are sorted bytewise by the columns before the counts; rows without hits are left out, but
            `statistics` always has every name.

        Raises:
            OSError: a temporary file cannot be read, or the scan is lost.
        """

@final
class WordCounter:
    """Counts the words of documents in memory: all that training needs, without a scan.

    Use a counter from one Python thread at a time.

    Args:
        pattern: name of a pattern of `PATTERNS`; one that cuts lines counts lines.
        threads: how many threads `add` and `finish` use; the counts do not depend on it.

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
        """Count every document of a batch with the column `content` (binary); other columns are ignored.

        The GIL is released. Content may be any bytes, up to 4 GiB per document.

        Raises:
            InvalidInputError: the column is missing, has another type or a null; then no document is counted.
        """

    def finish(self) -> pa.RecordBatchReader:
        """Return the counts of all documents added so far, and start anew.

        Returns:
            A reader of word (binary) and count (uint64), each word once, in batches of at most 8 MiB. Rows are ordered
            by the hash of the word, which depends on the words only: sorting would take longer than counting.
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
        """Compile rules, the JSON text that `configs.platforms.load_platform_rules` returns.

        Raises:
            InvalidInputError: the text has another form, or one of its rules is invalid.
        """

    def detect(self, documents: pa.RecordBatch, threads: int = 1) -> pa.RecordBatch:
        """Find the platforms of every document.

        Args:
            documents: Columns `path` (string) and `content` (binary), without nulls; others are ignored.
            threads: How many documents are processed at once; the result does not depend on it.

        Returns:
            One row per document, with the columns `platform_ids` (list of uint16, ascending) and `platform_info`
            (string: canonical JSON, category to label to at most 5 pieces of evidence).

        Raises:
            InvalidInputError: a column is missing, has another type or a null, or `threads` is 0.
        """

def lex(data: bytes) -> pa.RecordBatch:
    """Cut `data`, any bytes, into C++ tokens whose ranges cover it without gaps or overlaps.

    The GIL is released.

    Returns:
        One row per token, in order: kind (dictionary of strings: whitespace, newline, line_comment, block_comment,
        identifier, number, string, raw_string, char, header_name, punctuator, other; always all of them, in this
        order), start, end (uint64, bytes) and in_directive (bool: from a directive's `#` to the end of its line).

    Example:
        >>> lex(b"x;").to_pylist()[0]
        {'kind': 'identifier', 'start': 0, 'end': 1, 'in_directive': False}
    """

def merge_words(runs: Sequence[pa.RecordBatchReader]) -> pa.RecordBatchReader:
    """Merge sorted runs of words into one, adding up the counts of equal words.

    Args:
        runs: Readers of word (binary) and count (uint64), sorted bytewise by word, each word once; other columns are
            ignored. One batch of each is in memory at a time.

    Returns:
        A reader of word and count, sorted, in batches of at most 8 MiB, which are merged as they are read. It raises
        OSError if a run cannot be read, and ArrowInvalid if one is not sorted; the message has the run's number.

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
    """Split `data`, any bytes, into the words of the named pattern; concatenated, they are `data`.

    Valid UTF-8 is split where `tokenizers` splits it by the pattern's regular expression. Other text is first cut into
    its maximal valid runs, each split by itself; every invalid byte between them is a word.

    Raises:
        InvalidInputError: no pattern of that name; the message names the known ones.

    Example:
        >>> split("cpp-words-1", b"int x;").to_pylist()
        [b'int', b' x', b';']
    """

def train_bpe(
    words: list[pa.RecordBatch] | pa.RecordBatchReader,
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
    group_cap: float | None = None,
) -> pa.RecordBatch:
    """Learn byte-level BPE merges: first those that make each seed one token, then those of the words.

    If superwords are wanted, the last merges are learned from counts of lines, tokenized by the merges before. In
    names of arguments and results, `units` means lines.

    Args:
        words: Columns word (binary) and count (uint64), in any order; the counts of equal words add up. A reader is
            read once, a batch in memory at a time.
        seeds: Columns token (binary) and atomic (bool): strings of which each must become one token. A single byte
            already is one. Atomic seeds must be identifiers; no merge joins them to a byte outside `[A-Za-z0-9_]`.
        vocab_tokens: How many new tokens to make. Single bytes and seeds do not count; pieces of seeds do.
        forbidden: Strings that no merge may spell: the names of control and reserved ids.
        max_token_bytes: The most bytes of a token; no bound by default.
        threads: How many threads to use; the result does not depend on it.
        units: The lines, cut by `unit_pattern`: columns word (binary) and count (uint64), in any order, by batches.
        superword_tokens: How many of `vocab_tokens` to learn from the lines.
        unit_pattern: Name of the pattern of the lines; must be given with `superword_tokens`.
        max_superword_words: The most words of a token learned from lines, split by the pattern of words; no bound by
            default.
        max_superword_bytes: The most bytes of a token learned from lines; no bound by default.
        max_held_tokens: The most tokens of all distinct words, or lines, when training begins; each takes about 20
            bytes of memory. No bound by default. Above it, words below some least count are dropped, and lines below it
            are sampled by their CRC-32: each that is kept then counts as often as the least count. With this bound,
            each text must be in one row of a group only.
        group_cap: How many times as often as in the other groups, by the bytes of all, a pair counts in one group of
            texts at most, plus the square root of its count there; no cap by default. Words and lines then have a
            column group (uint16): the number of their project, say. The pair that is worth most then comes first; its
            row still has how often it occurs.

    Returns:
        One row per merge in rank order: left, right (binary), count (uint64; in phases 0 and 1 the count in the seeds)
        and phase (uint8): 0 for seeds inside runs of identifier bytes, 1 for seeds across their borders, 2 for words, 3
        for superwords. The schema's metadata says what `max_held_tokens` left out: words_least_count, words_left_out,
        units_least_count, units_left_out; with a least count of 1, nothing was left out.

    Raises:
        VocabularyError: a seed cannot become one token, there are no words or lines, or there are too few pairs to fill
            `vocab_tokens`; the message says which, why and what to change.
        InvalidInputError: a column is missing or of another type, an atomic seed is not an identifier, or the unit
            pattern is missing or unknown.

    Example:
        >>> words = pa.record_batch({"word": pa.array([b"hug", b"pug"]), "count": pa.array([3, 2], pa.uint64())})
        >>> seeds = pa.record_batch({"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())})
        >>> train_bpe([words], seeds=seeds, vocab_tokens=1, forbidden=[])["right"].to_pylist()
        [b'g']
    """

def count_tokens(
    merges: pa.RecordBatch,
    texts: pa.RecordBatchReader,
    *,
    first_superword: int | None = None,
    unit_pattern: str | None = None,
    threads: int = 1,
) -> pa.RecordBatch:
    """Count the tokens of texts: each text is encoded with the merges, and weighted by its count.

    Args:
        merges: Columns left and right (binary) in rank order, as `train_bpe` gives them.
        texts: Columns word (binary) and count (uint64), split by the pattern of the merges. Read in batches.
        first_superword: Rank of the first merge of superwords. Give it with `unit_pattern` where there are superwords:
            it changes no count, but takes a fraction of the time.
        unit_pattern: Name of the pattern of the lines.
        threads: How many threads to use.

    Returns:
        Columns token (binary) and count (uint64): one row for each of the 256 bytes, then one per merge in rank order.
        A count of 0 means that the texts never use the token.

    Raises:
        InvalidInputError: a column is missing or of another type, a merge joins strings that are not tokens yet
            or makes a token again, `first_superword` is beyond the merges, or the unit pattern is unknown.

    Example:
        >>> merges = pa.record_batch({"left": pa.array([b"u"]), "right": pa.array([b"g"])})
        >>> texts = pa.table({"word": pa.array([b"hug"]), "count": pa.array([3], pa.uint64())}).to_reader()
        >>> count_tokens(merges, texts).slice(256).to_pylist()
        [{'token': b'ug', 'count': 3}]
    """

@final
class Control:
    """A control token among the parts of `Tokenizer.encode_parts`, by its name with angle brackets or without.

    Values with equal names are equal; they can be hashed and pickled. Whether a tokenizer has such a token is
    checked when it is used.

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
    """A tokenizer directory, loaded to encode any bytes to token ids and to decode ids.

    For valid UTF-8 the ids are those of `tokenizers` with the directory's `tokenizer.json` and `encode_special_tokens`
    set: the characters of a control token in text are ordinary text. In other data each maximal valid run is encoded by
    itself, and each byte between them becomes a single-byte token. `decode(encode(data)) == data` for every `data`.

    The ids are those of the text alone, as with `add_special_tokens=False` in `tokenizers`, also if a template in
    `tokenizer.json` makes `AutoTokenizer` put `<BOS>` and `<EOS>` around it. Here `encode_batch` and `encode_parts` do.

    Methods release the GIL and may be called from several threads. Start worker processes by `spawn` or `forkserver`: a
    process that is forked while a thread of its parent encodes may wait for ever in a call with several threads. A long
    call in the main thread ends within about 0.1 s of Ctrl-C, or of another signal whose handler raises. Each thread
    that encodes has a cache of words of up to about 64 MB. Encoding a document of n bytes takes about n / 2 bytes more,
    and a single word of n bytes, such as a run of letters or spaces, up to about 16 n. With superwords (merges learned
    on lines, the pattern `cpp-lines-1`), there is also a cache of lines of up to about 28 MB (36 MB with 32-bit ids),
    and a line of n bytes takes up to about 35 n. The tokenizer keeps the caches, one for each thread that encoded at
    the same time.

    The pickle of a tokenizer has the path and digest of its directory. Unpickling loads the directory, which must still
    have that digest.

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
            digest: Refuse a tokenizer with another digest; pass the digest that a model was trained with, for example.

        Raises:
            OSError: a file cannot be read, or there is no manifest; the message says what to pass.
            CorruptDataError: a file does not have the digest that the manifest gives, the files contradict each other,
                or the tokenizer does not have the `digest`.
            InvalidInputError: the format is newer, or has a pre-token pattern or a setting that the encoder does not
                know; the message names it.
        """

    def encode(self, data: bytes | str) -> pa.Array[Any]:
        """Encode one text to a uint16 array, or uint32 if the vocabulary has more than 65,536 ids.

        Args:
            data: Any bytes, or a str, of which the UTF-8 is encoded.

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
        r"""Encode many texts, in order: a list of uint16 for each, or of uint32 as for `encode`.

        Args:
            documents: A binary or string array, chunked or not, without nulls, or a sequence of bytes or str. Do not
                write to an array's memory meanwhile: the tokenizer would keep false ids for words that it meets later.
            threads: The most threads to use; the ids do not depend on it.
            bos: An id to put before the ids of each text, such as `control_id("<BOS>")`.
            eos: An id to put after the ids of each text.

        Raises:
            InvalidInputError: another type, a null (with its row), a text of 4 GiB or more, more than 2^31 - 1
                tokens, or a `bos` or `eos` that is not below `vocab_size`.

        Example:
            >>> lists = tokenizer.encode_batch(["int x;", b"", "\n"])
            >>> len(lists), lists.type, len(lists[1])
            (3, ListType(list<item: uint16>), 0)
        """

    def encode_files(self, paths: Sequence[str | os.PathLike[str]], threads: int = 1) -> pa.ListArray[Any]:
        """Encode the bytes of files, in order, as `encode_batch` does, without making Python objects of them.

        Args:
            paths: Regular files.
            threads: The most threads that read and encode. Each has one file in memory at a time.

        Raises:
            OSError: a path is missing, is a folder or cannot be read; the message names it.
            InvalidInputError: as for `encode_batch`; the message names the file.

        Example:
            >>> path = pathlib.Path("main.cpp")
            >>> path.write_bytes(b"int main() {}")
            13
            >>> tokenizer.decode_batch(tokenizer.encode_files([path], threads=2)).to_pylist()
            [b'int main() {}']
        """

    def encode_parts(self, parts: Sequence[Control | bytes | str]) -> pa.Array[Any]:
        r"""Encode a sequence of texts and control tokens: the only way to put control ids between texts.

        Each text is encoded by itself, so no token crosses the border of two parts. The characters of a control token
        in a text are ordinary text.

        Returns:
            One array, of the type of `encode`.

        Raises:
            InvalidInputError: there is no control token of that name (the message has similar ones), or a text has
                4 GiB or more.
            TypeError: a part is neither `Control` nor bytes nor str.

        Example:
            >>> ids = tokenizer.encode_parts([Control("FIM_PREFIX"), b"int x = ", Control("FIM_SUFFIX"), b";\n"])
            >>> ids[0].as_py() == tokenizer.control_id("<FIM_PREFIX>")
            True
            >>> tokenizer.decode(ids, skip_control=True)
            b'int x = ;\n'
        """

    def stable_prefix(self, ids: pa.Array[Any] | Sequence[int]) -> int:
        """Return the number n of leading ids that no following text changes; drop the others before a completion.

        For every continuation, `encode(text + continuation)` begins with `ids[:n]`, where `text` is the text of the ids
        after the last control or reserved id; all ids up to that one are stable. Let the model continue from `ids[:n]`,
        and constrain its output to begin with the bytes of the dropped ids ("token healing"). Usually one or two ids
        are dropped.

        This takes about as long as encoding the text. If the ids are not the encoding of their text, for example
        because a model sampled them, no id from the first difference on is stable.

        Args:
            ids: An integer array, or a sequence of int.

        Raises:
            InvalidInputError: an id is not below `vocab_size`.

        Example:
            >>> ids = tokenizer.encode("int x = ret")
            >>> stable = tokenizer.stable_prefix(ids)
            >>> tokenizer.encode("int x = return_value;")[:stable] == ids[:stable]
            True
            >>> tokenizer.decode(ids[stable:]).endswith(b" ret")  # what a completion has to begin with
            True
        """

    def byte_offsets(self, ids: pa.Array[Any] | Sequence[int]) -> pa.Int64Array | pa.ListArray[Any]:
        """Return the byte offset of each token in the text, and of the end of the last one.

        The offsets are exact, because decoding loses nothing. A token may begin within a character. Control and
        reserved ids have no bytes.

        Args:
            ids: An integer array or a sequence of int, or a list array of integers.

        Returns:
            int64, one more than there are ids; for a list array, one list of offsets per list.

        Raises:
            InvalidInputError: an id is not below `vocab_size`; the message has its place and row.

        Example:
            >>> ids = tokenizer.encode("int x;")
            >>> offsets = tokenizer.byte_offsets(ids).to_pylist()
            >>> offsets[0], offsets[-1], len(offsets) == len(ids) + 1
            (0, 6, True)
        """

    def count(self, data: bytes | str) -> int:
        """Count the ids that `encode` returns, without making an array.

        Raises:
            InvalidInputError: as for `encode`.

        Example:
            >>> tokenizer.count("int main() {}") == len(tokenizer.encode("int main() {}"))
            True
        """

    def count_batch(
        self, documents: pa.Array[Any] | pa.ChunkedArray[Any] | Sequence[bytes | str], threads: int = 1
    ) -> pa.UInt64Array:
        """Count the ids of each text that `encode_batch` returns; each thread has the ids of one text in memory.

        Args:
            documents: A binary or string array, chunked or not, without nulls, or a sequence of bytes or str; not to be
                written to meanwhile, as in `encode_batch`.
            threads: The most threads to use.

        Raises:
            InvalidInputError: as for `encode_batch`, but the total number of tokens has no bound.

        Example:
            >>> tokenizer.count_batch(["", "x"]).to_pylist()
            [0, 1]
        """

    def decode(self, ids: pa.Array[Any] | Sequence[int], *, skip_control: bool = False) -> bytes:
        r"""Decode ids to bytes.

        Args:
            ids: An integer array, or a sequence of int.
            skip_control: Leave out control and reserved ids instead of refusing them.

        Raises:
            InvalidInputError: an id is not below `vocab_size`, or is a control or reserved id; the message names it.

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
        """Decode each list of ids; the result is a `pa.LargeBinaryArray` for 2 GiB or more.

        Args:
            ids: A list array of integers.
            threads: The most threads to use.
            bos: The id that each list must begin with; it is left out.
            eos: The id that each list must end with; it is left out.
            skip_control: Leave out control and reserved ids instead of refusing them.

        Raises:
            InvalidInputError: as for `decode`, and the message has the row; a list lacks its `bos` or `eos`; or `ids`
                is not a list array of integers without nulls.

        Example:
            >>> tokenizer.decode_batch(tokenizer.encode_batch([b"int", b""])).to_pylist()
            [b'int', b'']
        """

    def digest_batch(
        self, ids: pa.Array[Any], threads: int = 1, *, bos: int | None = None, eos: int | None = None
    ) -> pa.RecordBatch:
        """Return the length and digest of each decoded list of ids, without keeping the bytes.

        Args:
            ids: A list array of integers.
            threads: The most threads to use.
            bos: The id that each list must begin with.
            eos: The id that each list must end with.

        Returns:
            Columns num_bytes (uint64) and sha256 (string: lower-case hexadecimal digits), one row per list.

        Raises:
            InvalidInputError: as for `decode_batch`.

        Example:
            >>> tokenizer.digest_batch(tokenizer.encode_batch([b""])).to_pylist()
            [{'num_bytes': 0, 'sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}]
        """

    def count_control(self, documents: pa.Array[Any] | pa.ChunkedArray[Any] | Sequence[bytes | str]) -> dict[str, int]:
        """Count how often the characters of each control token occur in the texts.

        Returns:
            Name to occurrences, by id; only tokens that occur.

        Example:
            >>> tokenizer.count_control(["<EOS><EOS>", "<BOS"])
            {'<EOS>': 2}
        """

    def control_id(self, name: str) -> int:
        """Return the id of a control token by its name, such as `<EOS>` or `EOS`.

        Raises:
            InvalidInputError: the tokenizer has no control token of that name; the message has similar ones.
        """

    def token_bytes(self, id: int) -> bytes | None:
        """Return the bytes of an id, None for control and reserved ids.

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
        """The name of the pre-token pattern, a key of `PATTERNS` or, of another program, of `FOREIGN_PATTERNS`."""

    @property
    def is_lossy(self) -> bool:
        """Whether it puts text in NFC: only of a tokenizer adopted with `--allow-lossy`; else all text comes back."""

def corpus_digest_sum(doc_id: pa.Array[Any], project: pa.Array[Any], path: pa.Array[Any], threads: int = 1) -> bytes:
    """Sum the row digests of documents: 32 bytes, a big-endian number modulo 2^256.

    A row's digest is the SHA-256 of its `doc_id` (32 bytes), `project` and `path` (each its length as little-endian
    u32, then UTF-8). The sum does not depend on the order of rows, and sums of parts add up.

    Args:
        doc_id: The SHA-256 of each document, 64 lower-case hexadecimal digits; all three are string arrays.
        project: The documents' projects.
        path: The documents' paths.
        threads: The most threads to use.

    Raises:
        InvalidInputError: a wrong type, a null, unequal lengths or an invalid `doc_id`; the message has column and row.
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

    A row's digest is the SHA-256 of the bytes for `corpus_digest_sum`, then, all little-endian, `num_bytes` (u64), the
    number of token ids (u32), the ids (u32 each), the number of platform ids (u32), the platform ids (u16 each).

    Args:
        doc_id: As for `corpus_digest_sum`; `project` and `path` too.
        project: The documents' projects.
        path: The documents' paths.
        num_bytes: The documents' lengths; uint64.
        token_ids: A list array of unsigned integers.
        platform_ids: A list array of uint16.
        threads: The most threads to use.

    Raises:
        InvalidInputError: as for `corpus_digest_sum`.
    """

def digest_contents(content: pa.Array[Any], threads: int = 1) -> pa.RecordBatch:
    r"""Return for each document of a binary array its SHA-256 (`doc_id`, string) and whether it has a NUL byte.

    Args:
        content: The documents.
        threads: The most threads to use.

    Returns:
        A batch with the columns `doc_id` (64 lower-case hexadecimal digits), `has_nul` (bool) and `is_wide` (bool: a
        byte-order mark of UTF-16 or UTF-32, and a NUL byte).

    Raises:
        InvalidInputError: another type, or a null.

    Example:
        >>> digest_contents(pa.array([b"int a;", b"\0"]))["has_nul"].to_pylist()
        [False, True]
    """

def json_rows(rows: pa.RecordBatch) -> bytes:
    """Return rows of string and uint64 columns as JSON arrays, one after the other, as `json.dumps` writes them.

    Raises:
        InvalidInputError: a column of another type.

    Example:
        >>> json_rows(pa.record_batch({"path": ["a.cpp", None], "bytes": pa.array([1, 2], pa.uint64())}))
        b'["a.cpp", 1][null, 2]'
    """

def list_folders(
    root: bytes, folders: list[str], *, threads: int = 1
) -> list[int | list[tuple[str, int, int, tuple[int, int, int], int]]]:
    """List folders, many at a time; links are not followed.

    Args:
        root: The folder that they are below.
        folders: Their paths below it, surrogate escapes allowed.
        threads: How many folders are listed at the same time.

    Returns:
        For each the number of the operating system's error, or its entries in no order: name, kind (0 a file, 1 a
        folder, 2 a link, 3 anything else), and of a file its size; its times of modification and of the last change
        that the system noted, in nanoseconds, with its inode, which is 0 where files may be numbered anew; and the
        number of the error that looking at it gave, 0 for none.

    Raises:
        OSError: the threads cannot be started.
    """

def read_files(
    root: bytes, paths: pa.Array[Any], num_bytes: pa.Array[Any], *, max_bytes: int, keep: bool = False, threads: int = 1
) -> pa.RecordBatch:
    """Read files and digest them; links are not followed, and a file that cannot be read fails no other.

    Args:
        root: The folder.
        paths: The files' paths below it, any bytes; a binary array.
        num_bytes: Their sizes when they were listed, uint64: how much memory is made ready.
        max_bytes: Larger files are not read.
        keep: Whether to return the bytes.
        threads: How many files are read at the same time.

    Returns:
        A batch with a row for each file: `num_bytes` (uint64), `doc_id` (string: SHA-256; empty for what was not read),
        `has_nul` and `is_wide` (bool, as in `digest_contents`), `error` (int32: the number of the operating system's
        error, 0 for none; a file that is not a regular one does not exist) and, if the bytes are kept, `content`
        (large_binary).

    Raises:
        InvalidInputError: columns of another type, with nulls or of unequal lengths.
        OSError: the threads cannot be started.
    """

def read_json_lines(
    data: bytes,
    start: int,
    *,
    content: bytes,
    path: bytes,
    project: bytes | None = None,
    license: bytes | None = None,
    max_lines: int,
) -> tuple[pa.RecordBatch, int, int]:
    """Read lines of JSON: the texts under a few keys of objects.

    A line is read only if `json.loads` is sure to take it, and to say the same of it. All others are left to that.

    Args:
        data: Lines; the last one needs no line feed.
        start: Where in `data` to begin.
        content: The key of the text, UTF-8; a line without text there is not read.
        path: The key of the path.
        project: The key of the project, None for none.
        license: The key of the licence, None for none; a line with one that is neither text nor null is not read.
        max_lines: The most lines.

    Returns:
        A batch, how many lines there were, and the place behind them. A line that is not blank has a row: `line`
        (uint32, its number from 0), `start` and `end` (uint64: its place in `data`, with its line feed), `is_read`
        (bool), `content` (large_binary, empty if it is not read), `path`, `project` and `license` (string, null for
        what is no text or empty).
    """
