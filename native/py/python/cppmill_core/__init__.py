"""Native core of cppmill: scanning, BPE training and encoding of C++ text.

Training scripts import this package alone: it needs pyarrow, and neither Beam nor the `cppmill` package.
"""

from cppmill_core._native import (
    PATTERNS,
    CoreError,
    CorruptDataError,
    InvalidInputError,
    PlatformDetector,
    VocabularyError,
    __version__,
    split,
)

__all__ = [
    "PATTERNS",
    "CoreError",
    "CorruptDataError",
    "InvalidInputError",
    "PlatformDetector",
    "VocabularyError",
    "__version__",
    "split",
]
