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
from cppmill_core.kinds import AnyTokenizer, load_tokenizer

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
    "VocabularyError",
    "WordCounter",
    "__version__",
    "corpus_digest_sum",
    "count_tokens",
    "dataset_digest_sum",
    "lex",
    "load_tokenizer",
    "merge_words",
    "split",
    "train_bpe",
]
