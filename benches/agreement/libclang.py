"""Raw C++ tokens of libclang, whole files at a time, through ctypes.

`clang_tokenize` runs Clang's raw lexer over any range of a file that a translation unit holds. To have no more done
than that, the source is given as an unsaved file within `#if 0`, which the parser skips; nothing is read from disk, no
header is looked for. Many `#if 0` are nested, so that a source with more `#endif` than `#if` is skipped
to its end too. Python's own binding of libclang makes an object of every token, which takes hours where this takes
minutes.

What it does not do: conditionals, macros and header names, which Clang's preprocessor knows and its raw lexer does not.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_ulong, c_void_p
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import clang.native
import numpy as np
import numpy.typing as npt

ARGUMENTS = (b"-xc++", b"-std=c++2c", b"-nostdinc", b"-undef", b"-w", b"--target=bpf")
"""C++26. The rest saves time, two thirds of that for a small source: no macros, no search for a tool chain."""

_NAME = b"source.cpp"
_NESTED = 64
_BEFORE, _AFTER = b"#if 0\n" * _NESTED, b"\n" + b"#endif\n" * _NESTED
_PARSE_OPTIONS = 0x200 | 0x400
"""CXTranslationUnit_KeepGoing and CXTranslationUnit_SingleFileParse."""

_TOKEN = np.dtype([("kind", "<u4"), ("location", "<u4"), ("length", "<u4"), ("unused", "<u4"), ("pointer", "<u8")])
"""CXToken as libclang 18 fills it; `Libclang` checks that on a source whose tokens are known."""


class ClangKind(IntEnum):
    """CXTokenKind."""

    PUNCTUATION = 0
    KEYWORD = 1
    IDENTIFIER = 2
    LITERAL = 3
    COMMENT = 4


class ClangTokens(NamedTuple):
    """The tokens of a source, in order, without spaces and line endings.

    Attributes:
        kind: `ClangKind` of each, uint32.
        start: Where each begins, int64, in bytes.
        end: Where the byte after its last one is, int64.
    """

    kind: npt.NDArray[np.uint32]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


class _Location(ctypes.Structure):
    _fields_ = (("pointers", c_void_p * 2), ("offset", c_uint))


class _Range(ctypes.Structure):
    _fields_ = (("pointers", c_void_p * 2), ("begin", c_uint), ("end", c_uint))


class _UnsavedFile(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("contents", c_char_p), ("length", c_ulong))


class Libclang:
    """Clang's raw lexer. For one thread of one process.

    Raises:
        RuntimeError: If this libclang lays out its tokens in another way than libclang 18.

    Example:
        >>> Libclang().tokenize(b"int x;").start
        array([0, 4, 5])
    """

    def __init__(self) -> None:
        """Load the library and check the layout of its tokens."""
        self._library = ctypes.CDLL(str(Path(clang.native.__path__[0]) / "libclang.so"))
        for name, (result, *arguments) in _PROTOTYPES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._index = self._library.clang_createIndex(0, 0)
        self._arguments = (c_char_p * len(ARGUMENTS))(*ARGUMENTS)
        self._check_layout()

    def tokenize(self, source: bytes) -> ClangTokens:
        """Return the tokens of `source`, which may be anything without a NUL byte.

        Raises:
            RuntimeError: If libclang cannot make a translation unit of it.
        """
        text = _BEFORE + source + _AFTER
        unsaved = (_UnsavedFile * 1)(_UnsavedFile(_NAME, text, len(text)))
        unit = self._library.clang_parseTranslationUnit(
            self._index, _NAME, self._arguments, len(ARGUMENTS), unsaved, 1, _PARSE_OPTIONS
        )
        if unit is None:
            raise RuntimeError(f"libclang made no translation unit of a source of {len(source)} bytes: {source[:80]!r}")
        try:
            tokens, base = self._tokens(unit, len(source))
        finally:
            self._library.clang_disposeTranslationUnit(unit)
        start = tokens["location"].astype(np.int64) - base
        end = np.minimum(start + tokens["length"], len(source))
        return ClangTokens(tokens["kind"], start, end)

    def _tokens(self, unit: int, source_bytes: int) -> tuple[npt.NDArray[Any], int]:
        """Copy the token array of a unit and return it with the location of the source's first byte."""
        library = self._library
        file = library.clang_getFile(unit, _NAME)
        begin = library.clang_getLocationForOffset(unit, file, len(_BEFORE))
        end = library.clang_getLocationForOffset(unit, file, len(_BEFORE) + source_bytes)
        array, count = c_void_p(), c_uint()
        library.clang_tokenize(unit, library.clang_getRange(begin, end), byref(array), byref(count))
        if not array.value:
            return np.empty(0, _TOKEN), begin.offset
        tokens = np.frombuffer(ctypes.string_at(array.value, count.value * _TOKEN.itemsize), _TOKEN)
        library.clang_disposeTokens(unit, array, count)
        # A range takes the token at its end too.
        return tokens[tokens["location"] < end.offset], begin.offset

    def _check_layout(self) -> None:
        source = b'int x = 1; // "a"\nL"b" #endif\n'
        tokens = self.tokenize(source)
        texts = [source[start:end] for start, end in zip(tokens.start, tokens.end, strict=True)]
        expected = [b"int", b"x", b"=", b"1", b";", b'// "a"', b'L"b"', b"#", b"endif"]
        if texts != expected or tokens.kind.tolist() != [1, 2, 0, 3, 0, 4, 3, 0, 2]:
            raise RuntimeError(f"this libclang lays out tokens in another way: {texts}; use libclang 18")


_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "clang_createIndex": (c_void_p, c_int, c_int),
    "clang_parseTranslationUnit": (
        *(c_void_p, c_void_p, c_char_p),
        *(POINTER(c_char_p), c_int),
        *(POINTER(_UnsavedFile), c_uint, c_uint),
    ),
    "clang_disposeTranslationUnit": (None, c_void_p),
    "clang_getFile": (c_void_p, c_void_p, c_char_p),
    "clang_getLocationForOffset": (_Location, c_void_p, c_void_p, c_uint),
    "clang_getRange": (_Range, _Location, _Location),
    "clang_tokenize": (None, c_void_p, _Range, POINTER(c_void_p), POINTER(c_uint)),
    "clang_disposeTokens": (None, c_void_p, c_void_p, c_uint),
}
"""Result and arguments of the functions of clang-c/Index.h that are called."""
