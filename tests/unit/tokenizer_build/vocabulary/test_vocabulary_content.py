"""What the shipped vocabulary holds, band by band; what a corpus keeps of it is measured in docs/explanation/LOG.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenizer_build.bands import BANDS
from tokenizer_build.vocabulary import Vocabulary

VOCABULARY_DIR = Path(__file__).parents[4] / "configs" / "vocab"
FREE_FOR_LATER = 150

LEAST_TOKENS = {
    "keywords": 150,
    "operators": 170,
    "preprocessor": 160,
    "numbers": 300,
    "whitespace": 110,
    "library": 1600,
    "morphemes": 180,
    "integers": 380,
    "domain": 1300,
}

KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue contract_assert co_await co_return co_yield decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq final
import module override
"""
"""[lex.key] of the C++26 draft, the alternative tokens, and the identifiers with special meaning that are words."""

EXAMPLES = [
    ("operators", "<=> ->* ::* <% %> <: :> %: %:%: ^^ <<< >>> [[ ]]"),
    ("preprocessor", "#include #elif __VA_OPT__ __has_include __STDC_VERSION__"),
    ("numbers", "0u 1ULL 0x01 1. 0.25 02x 127.0.0.1"),
    (
        "library",
        "time_since_epoch memory_order parent_path PRIu64 pthread_mutex_t SO_REUSEADDR sockaddr_in st_mode",
    ),
    ("domain", "__builtin_expect __has_attribute __cpp_exceptions _MSC_VER __CUDA_ARCH__ __linux__ __m128i"),
    ("domain", "cuTensorMapEncodeTiled CUBLAS_OP_N cudaLaunchKernelEx float4 __syncwarp CUTE_HOST_DEVICE"),
    ("domain", "QString Q_OBJECT BOOST_ASSERT StringRef MPI_Comm PyObject GLuint VkDevice HANDLE JNIEnv"),
]


def test_every_keyword_of_cpp26_has_an_id(vocabulary: Vocabulary) -> None:
    assert [keyword for keyword in KEYWORDS.split() if keyword not in vocabulary.by_token] == []


@pytest.mark.parametrize(("band", "examples"), EXAMPLES)
def test_a_band_holds_what_it_is_for(vocabulary: Vocabulary, band: str, examples: str) -> None:
    tokens = examples.split()
    assert {token: vocabulary.by_token[token].band.name for token in tokens} == dict.fromkeys(tokens, band)


@pytest.mark.parametrize("token", ["   ", "\n", "\n\n", "\n    ", "\t\t\t\t", "\r\n"])
def test_indentation_and_line_breaks_have_ids(vocabulary: Vocabulary, token: str) -> None:
    assert vocabulary.by_token[token].band.name == "whitespace"


@pytest.mark.parametrize(("band", "least"), LEAST_TOKENS.items())
def test_a_band_is_filled(vocabulary: Vocabulary, band: str, least: int) -> None:
    assert sum(token.band.name == band for token in vocabulary.tokens) >= least


def test_domains_leave_ids_for_later(vocabulary: Vocabulary) -> None:
    domain = next(band for band in BANDS if band.name == "domain")
    used = sum(token.id in domain for token in vocabulary.tokens)
    assert domain.last - domain.first + 1 - used >= FREE_FOR_LATER


@pytest.mark.parametrize("path", sorted(VOCABULARY_DIR.rglob("*.toml")), ids=lambda path: path.stem)
def test_a_file_says_why_it_exists_and_is_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) < 400
