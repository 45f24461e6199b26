"""Native core of cppmill: scanning, BPE training and encoding of C++ text.

Training scripts import this package alone: it needs pyarrow, and neither Beam nor the `cppmill` package.
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
    lex,
    merge_words,
    split,
    train_bpe,
)
from cppmill_core.checkpoints import VocabStamp, assert_vocab, read_stamp, stamp
from cppmill_core.kinds import AnyTokenizer, load_tokenizer, open_any

__all__ = [
    "PATTERNS",
    "AnyTokenizer",
    "Control",
    "CoreError",
    "CorruptDataError",
    "InvalidInputError",
    "PlatformDetector",
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
    "lex",
    "load_tokenizer",
    "merge_words",
    "open_any",
    "read_stamp",
    "split",
    "stamp",
    "train_bpe",
]
