"""Native core of cppmill: scanning, BPE training and encoding of C++ text.

Training scripts need this package only: it depends on pyarrow, and on neither Beam nor the `cppmill` package.
"""

from cppmill_core._native import (
    PATTERNS,
    Control,
    CoreError,
    CorruptDataError,
    InvalidInputError,
    PlatformDetector,
    Scanner,
    Tokenizer,
    VocabularyError,
    WordCounter,
    __version__,
    corpus_digest_sum,
    count_tokens,
    dataset_digest_sum,
    digest_contents,
    json_rows,
    lex,
    list_folders,
    merge_words,
    read_files,
    read_json_lines,
    split,
    train_bpe,
)
from cppmill_core.checkpoints import VocabStamp, assert_vocab, read_stamp, stamp
from cppmill_core.loading import load_tokenizer, open_any
from cppmill_core.platforms import PlatformVocab, platform_vocab
from cppmill_core.protocol import AnyTokenizer

__all__ = [
    "PATTERNS",
    "AnyTokenizer",
    "Control",
    "CoreError",
    "CorruptDataError",
    "InvalidInputError",
    "PlatformDetector",
    "PlatformVocab",
    "Scanner",
    "Tokenizer",
    "VocabStamp",
    "VocabularyError",
    "WordCounter",
    "__version__",
    "assert_vocab",
    "corpus_digest_sum",
    "count_tokens",
    "dataset_digest_sum",
    "digest_contents",
    "json_rows",
    "lex",
    "list_folders",
    "load_tokenizer",
    "merge_words",
    "open_any",
    "platform_vocab",
    "read_files",
    "read_json_lines",
    "read_stamp",
    "split",
    "stamp",
    "train_bpe",
]
