"""Secrets: each detector finds what its service gives out, and nothing in real headers.

The tokens are made here: none stands in this file, so that no scanner takes it for a leak.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import ConfigError
from schemas.options import IngestOptions
from schemas.reasons import Filtered
from transforms.filters.secrets import DETECTORS, SecretDetectors, _load
from transforms.filters.verdicts import make_content_filter

SECRETS = SecretDetectors()
BODY = "Q9zR" * 30
PATTERNS = [(markers, regex) for name, markers in DETECTORS.items() for regex in type(_load(name)).__mro__[1].denylist]


def tokens() -> dict[str, str]:
    """A token of each kind."""
    return {
        "AWS Access Key": "AK" + "IA" + BODY.upper()[:16],
        "Azure Storage Account access key": "Account" + "Key=" + BODY[:86] + "==",
        "GitHub Token": "gh" + "p_" + BODY[:36],
        "GitLab Token": "gl" + "pat-" + BODY[:20],
        "JSON Web Token": ".".join(["ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiIxIn0", BODY[:43]]),
        "NPM tokens": "//registry.example/:_auth" + "Token=npm_" + BODY[:36],
        "OpenAI Token": "sk-" + BODY[:20] + "T3Blbk" + "FJ" + BODY[:20],
        "PyPI Token": "pypi-AgEIcHlwaS5" + "vcmc" + BODY[:80],
        "SendGrid API Key": "S" + "G." + BODY[:22] + "." + BODY[:43],
        "Slack Token": "xo" + "xb-1234567890-" + BODY[:24],
        "Square OAuth Secret": "sq0" + "csp-" + BODY[:43],
        "Stripe Access Key": "sk_" + "live_" + BODY[:99],
    }


def private_key(line_end: str) -> bytes:
    header = "PRIVATE" + " KEY-----"
    return f"-----BEGIN RSA {header}{line_end}{BODY[:64]}{line_end}{BODY[:20]}{line_end}-----END RSA {header}".encode()


@pytest.mark.parametrize("kind", tokens())
def test_each_kind_is_named_with_its_line_and_never_repeated(kind: str) -> None:
    token = tokens()[kind]
    found = SECRETS.find_secret(f'int a;\nint b;\nconst char* key = "{token}";\n'.encode())
    assert found == f"{kind} in line 3"
    assert token not in found


def test_every_detector_is_tried() -> None:
    kinds = {_load(name).secret_type for name in DETECTORS}
    assert kinds == {*tokens(), "Private Key"}


@pytest.mark.parametrize("line_end", ["\n", "\r\n", '\\n"\n  "', "\\n"])
def test_a_private_key_counts_with_its_material_alone(line_end: str) -> None:
    key = private_key(line_end)
    assert SECRETS.find_secret(b"int a;\n" + key) == "Private Key in line 2"
    assert SECRETS.find_secret(b"int a;\n" + key[:40]) is None
    assert (
        SECRETS.find_secret(b'if (line == "-----BEGIN RSA ' + b'PRIVATE KEY-----") parse(rest_of_the_file);\n') is None
    )


@pytest.mark.parametrize(
    "lines", [["Version: GnuPG v1", ""], ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0", ""]]
)
def test_a_private_key_may_have_lines_of_its_own_before_the_material(lines: list[str]) -> None:
    header = "-----BEGIN PGP PRIVATE" + " KEY BLOCK-----"
    assert SECRETS.find_secret("\n".join([header, *lines, BODY[:64]]).encode()) == "Private Key in line 1"
    assert SECRETS.find_secret("\n".join([header, *lines, "// no key"]).encode()) is None


@pytest.mark.parametrize(
    ("start", "line_end"),
    [
        ('"{ \\"private_key\\": \\"', '"\n    "\\\\n'),
        ('"{ \\"private_key\\": \\"', '\\\\n"\n    "'),
        ('#define K \\\n  "', '\\n" \\\n  "'),
        ("#define K \\\n", "\\n\\\n"),
        ("// ", "\n// "),
        ("/// ", "\r\n/// "),
        ("/*\n * ", "\n * "),
        ("# ", "\n# "),
    ],
)
@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "ENCRYPTED "])
def test_a_private_key_is_found_as_cpp_writes_it(start: str, line_end: str, kind: str) -> None:
    key = private_key(line_end).decode().replace("RSA ", kind)
    line = start.count("\n") + 2
    assert SECRETS.find_secret(f"int a;\n{start}{key}".encode()) == f"Private Key in line {line}"
    assert SECRETS.find_secret(f"int a;\n{start}{key.replace(BODY[:20], 'no key ')}".encode()) is None


@pytest.mark.parametrize("rule", ["=" * 70, "/" * 70, "*" * 70, "-" * 70])
def test_a_rule_of_a_comment_is_not_a_key(rule: str) -> None:
    header = "-----BEGIN PRIVATE" + " KEY-----"
    assert SECRETS.find_secret(f"// {header}\n// {rule}\n".encode()) is None


def test_a_public_key_beside_the_header_of_a_private_one_does_not_count() -> None:
    private, public = ("-----BEGIN " + kind + " KEY-----" for kind in ("PRIVATE", "PUBLIC"))
    assert SECRETS.find_secret(f'find("{private}");\n{public}\n{BODY[:64]}\n'.encode()) is None


def test_a_fine_grained_token_of_github_is_found() -> None:
    token = "github" + "_pat_" + BODY[:22] + "_" + BODY[:59]
    assert SECRETS.find_secret(f'auto t = "{token}";'.encode()) == "GitHub Token in line 1"
    assert SECRETS.find_secret(f'auto t = "{token[:80]}";'.encode()) is None


@pytest.mark.parametrize("kind", tokens())
@pytest.mark.parametrize("before", [0, 1000, 1024, 5000])
def test_a_token_is_found_after_others_that_do_not_count(kind: str, before: int) -> None:
    token = tokens()[kind]
    almost = token[:11] + "!"
    text = f"{almost}\n{'x' * before}\n{token}\n"
    assert SECRETS.find_secret(text.encode()) == f"{kind} in line 3"


def test_texts_that_are_all_markers_end() -> None:
    header = b"BEGIN PRIVATE" + b" KEY-----"
    keys = (header + b"a: " * 20_000, (header + b"\\" * 99) * 1_000, (header + b"// " * 300) * 100)
    for text in (b"eyJ" * 20_000, b"//" * 20_000 + b"/:_authToken=", *keys, b"aws" * 20_000):
        assert SECRETS.find_secret(text) is None


@pytest.mark.parametrize("unit", [b"eyJ", b"eyJ" * 1_000 + b" ", b"eyJ" * 1_000 + b"."])
def test_megabytes_of_the_starts_of_web_tokens_have_no_secret(unit: bytes) -> None:
    """A search that went on to the end of the text from each start would take hours."""
    assert SECRETS.find_secret(unit * (4_000_000 // len(unit))) is None


@pytest.mark.parametrize(
    "unit", [b"/" * 50 + b":_authToken=", b"sk-" + b"a" * 20 + b"T3Blbk" + b"FJ", b"sk-" * 100 + b"T3Blbk" + b"FJ"]
)
def test_megabytes_of_what_may_begin_a_token_have_no_secret(unit: bytes) -> None:
    """A search of each window from each of its slashes would take minutes."""
    text = unit * (8_000_000 // len(unit))
    assert SECRETS.find_secret(text) is None
    assert not list(SECRETS.find_places(text))


@pytest.mark.parametrize("line", ["", "Private-Lines: 2\n"])
def test_megabytes_of_headers_of_putty_have_no_key(line: str) -> None:
    """A search to the end of the text from each of them would take an hour."""
    header = ("PuTTY-User-Key-" + f"File-2: x\n{line}").encode()
    assert not list(SECRETS.find_places(header * (8_000_000 // len(header))))


PIECES = [
    "/",
    "//",
    "/:_auth" + "Token=",
    "npm_",
    "sk-",
    "T3Blbk" + "FJ",
    "a" * 20,
    "1" * 36,
    "-",
    ":",
    " ",
    "\n",
    "\u00e9",
]


@pytest.mark.parametrize("kind", ["npm.NpmDetector", "openai.OpenAIDetector"])
@given(text=st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_pattern_that_takes_linear_time_finds_what_that_of_the_library_finds(kind: str, text: str) -> None:
    ours = _load(kind)
    library = type(ours).__mro__[1]()
    expected, found = set(library.analyze_string(text)), set(ours.analyze_string(text))
    assert expected <= found
    assert bool(expected) == bool(found)


def web_token(header: str, payload: str) -> bytes:
    parts = [base64.urlsafe_b64encode(part.encode()).rstrip(b"=") for part in (header, payload)]
    return b".".join([*parts, BODY[:43].encode()])


@pytest.mark.parametrize("size", [10, 1_500, 100_000])
def test_a_web_token_of_any_length_is_found(size: int) -> None:
    long = json.dumps({"sub": "x" * size})
    for token in (web_token('{"alg":"none"}', long), web_token(long, '{"sub":1}')):
        assert SECRETS.find_secret(b'int a;\nauto t = "token=' + token + b'";\n') == "JSON Web Token in line 2"


def test_a_web_token_nested_deeper_than_python_reads_is_none() -> None:
    assert SECRETS.find_secret(web_token('{"a":' + "[" * 200_000, "{}")) is None


def test_an_aws_key_inside_of_a_longer_word_is_none() -> None:
    token = tokens()["AWS Access Key"]
    assert SECRETS.find_secret(f"TTCACTACG{token}AGGG\n".encode()) is None
    assert SECRETS.find_secret(f"{token}\n".encode()) == "AWS Access Key in line 1"


def test_an_aws_key_counts_where_it_is_no_part_of_a_word() -> None:
    token = tokens()["AWS Access Key"]
    assert SECRETS.find_secret(f"TT{token}AG\n\n{token}\n".encode()) == "AWS Access Key in line 3"
    assert list(SECRETS.find_places(f"TT{token}AG\n{token}".encode())) == [(len(token) + 5, 2 * len(token) + 5)]


@pytest.mark.parametrize("unit", [b"AKIA", b"AKIA%d" + b"A" * 9])
def test_a_megabyte_of_keys_of_aws_in_one_word_has_no_secret(unit: bytes) -> None:
    """A search of the whole text for each of them would take half an hour."""
    numbers = range(10_000_000, 10_000_000 + 1_000_000 // 20) if b"%" in unit else [unit] * 250_000
    text = b"".join(unit % number if b"%" in unit else unit for number in numbers)
    assert SECRETS.find_secret(text) is None
    assert not list(SECRETS.find_places(text))


def test_a_document_that_is_not_text_is_read_too() -> None:
    assert SECRETS.find_secret(b"\xff\xfe\n" + tokens()["GitHub Token"].encode()) == "GitHub Token in line 2"


@settings(max_examples=30)
@given(data=st.data())
def test_what_a_detector_finds_has_one_of_its_markers(data: st.DataObject) -> None:
    markers, regex = data.draw(st.sampled_from(PATTERNS))
    text = data.draw(st.from_regex(regex, fullmatch=True, alphabet=st.characters(max_codepoint=127)))
    assert any(re.search(marker, text.lower().encode()) for marker in markers)


def test_real_headers_have_none() -> None:
    headers = [*Path(np.get_include()).rglob("*.h"), *Path(pa.get_include()).rglob("*.h")]
    assert len(headers) > 400
    assert not [path for path in headers if SECRETS.find_secret(path.read_bytes())]


def test_the_filter_says_what_it_found() -> None:
    found = make_content_filter(IngestOptions(drop_secrets=True))(tokens()["GitHub Token"].encode(), None)
    assert (found.reason, found.detail) == (Filtered.SECRET, "GitHub Token in line 1")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "detect_secrets.plugins.aws", None)
    with pytest.raises(ConfigError, match=r"cppmill\[secrets\]"):
        make_content_filter(IngestOptions(drop_secrets=True))
