"""Redaction: what is found in real text, what it is replaced by, what the dataset says about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import pytest

from schemas.options import IngestOptions
from transforms.filters.addresses import find_emails, find_ips
from transforms.filters.redaction import WORDS, Redactor, make_redactor
from transforms.filters.secrets import SecretDetectors
from transforms.ingest.plan import plan_ingest
from transforms.storage.folder import OutputFolder

SAMPLE = Path(__file__).parents[3] / "data" / "redaction.jsonl"
FINDERS = {"email": find_emails, "ip": find_ips}
BODY = "Q9zR" * 30


def redactor(*kinds: str, length: str = "words") -> Redactor:
    found = make_redactor(IngestOptions(redact=kinds, redact_with=length))
    assert found
    return found


def redacted(text: bytes, *kinds: str, length: str = "words") -> bytes:
    return redactor(*kinds, length=length).redact(text)[0]


@pytest.mark.parametrize(
    ("kind", "corpora", "found", "missed"),
    [
        ("email", ("QUICK", "TRAIN"), 336, 0),
        ("email", ("DEV",), 138, 3),
        ("ip", ("QUICK", "TRAIN"), 19, 2),
        ("ip", ("DEV",), 2, 0),
    ],
)
def test_the_labelled_sample_gives_the_figures_of_the_page(
    kind: str, corpora: tuple[str, ...], found: int, missed: int
) -> None:
    """docs/how-to/filters.md; nothing is found that is labelled as something else."""
    results = {True: [0, 0], False: [0, 0]}
    for row in map(json.loads, SAMPLE.read_text().splitlines()):
        if row["kind"] == kind and row["corpus"] in corpora:
            before, text = row["before"].encode("latin-1"), row["text"].encode("latin-1")
            places = FINDERS[kind](before + text + row["after"].encode("latin-1"))
            hit = any(first < len(before + text) and last > len(before) for first, last in places)
            results[row["is"]][not hit] += 1
    assert results[True] == [found, missed]
    assert results[False][0] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"// Jane <jane.doe+x@mail.acme.org>.", b"// Jane <REDACTED_EMAIL>."),
        (b"jane at acme dot com, joe[at]acme[dot]org", b"REDACTED_EMAIL, REDACTED_EMAIL"),
        (b"jane (at) acme (dot) org, joe {at} acme {dot} org", b"REDACTED_EMAIL, REDACTED_EMAIL"),
        (b"// by JANE AT ACME DOT COM; LOOK AT ACME.COM", b"// by REDACTED_EMAIL; LOOK AT ACME.COM"),
        (b"git@github.com:a/b https://user:pass@acme.com/ https://acme.com;user@acme.com a@example.org", None),
        (b'f("http://acme.org","jane@acme.org")', b'f("http://acme.org","REDACTED_EMAIL")'),
        (b"<a href='ftp://acme.org'><b>jane@acme.org</b>", b"<a href='ftp://acme.org'><b>REDACTED_EMAIL</b>"),
        (b"http://acme.org?mail=jane@acme.org", b"http://acme.org?mail=REDACTED_EMAIL"),
        (rb'"jane@acme.org\njoe@acme.org\\nick@acme.org"', rb'"REDACTED_EMAIL\nREDACTED_EMAIL\\REDACTED_EMAIL"'),
        (rb'"\tjoe at acme dot com"', rb'"\tREDACTED_EMAIL"'),
        (b"// expected-note@other.cc:3 {{x}} f@GLIBC_2.2 look at acme.com", None),
        (b'connect("8.8.4.4:53"); bind("[2620:fe::9]")', b'connect("REDACTED_IP:53"); bind("[REDACTED_IP]")'),
        (rb'"\t8.8.4.4\n2620:fe::9\r\n8.8.8.8"', rb'"\tREDACTED_IP\nREDACTED_IP\r\nREDACTED_IP"'),
        (rb'"\\\n8.8.4.4" "dns:\t8.8.8.8"', rb'"\\\nREDACTED_IP" "dns:\tREDACTED_IP"'),
        (rb'"\\n8.8.4.4" "\\n2620:fe::9" "section\t6.5.2.2" C:\src\v9.1.2.3 "\q8.8.4.4" "\n127.0.0.1"', None),
        (b'"127.0.0.1" "10.0.0.1" "192.0.2.7" "fe80::1" "2001:db8::1" "224.0.0.1"', None),
        (b'{"2.5.4.3", "CN"}, {"1.3.6.1."} "1.3.6.1.5.5.7" kOidOfNobody("9.1.2.3") "8.1.2.3.4:80"', None),
        (b'version = "9.1.2.3"; // 23.2.4.1 insert, Chrome/110.0.0.0, zlib-1.2.3.4', None),
    ],
)
def test_addresses_are_replaced_and_what_looks_like_them_is_not(text: bytes, expected: bytes | None) -> None:
    assert redacted(text, "email", "ip") == (text if expected is None else expected)


def private_key(line_end: str) -> bytes:
    header = "PRIVATE" + " KEY-----"
    return (
        f"-----BEGIN RSA {header}{line_end}{BODY[:64]}{line_end}{BODY[:20]}=={line_end}-----END RSA {header}".encode()
    )


@pytest.mark.parametrize("line_end", ["\n", '\\n"\n  "', "\\n\\\n", "\n// "])
@pytest.mark.parametrize("length", ["words", "same-length"])
def test_the_lines_of_a_key_are_replaced_and_the_code_around_them_is_not(line_end: str, length: str) -> None:
    text = b'const char* key = "' + private_key(line_end) + b'";\nint a;\n'
    changed = redacted(text, "secret", length=length)
    if length == "words":
        header = b"PRIVATE" + b" KEY-----"
        ends = line_end.encode()
        body = b"-----BEGIN RSA " + header + ends + WORDS["secret"] + ends + b"-----END RSA " + header
        assert changed == b'const char* key = "' + body + b'";\nint a;\n'
    else:
        assert len(changed) == len(text)
        assert changed == text.replace(BODY[:64].encode(), b"x" * 64).replace(BODY[:20].encode() + b"==", b"x" * 22)


@pytest.mark.parametrize(
    ("address", "is_routed"),
    [
        ("192.0.0.7", False),
        ("192.0.0.9", True),
        ("100.127.255.255", False),
        ("224.0.0.1", False),
        ("2001:1::1", False),
        ("2001:200::1", True),
        ("2002::1", True),
    ],
)
def test_what_is_routed_does_not_depend_on_the_version_of_python(address: str, is_routed: bool) -> None:
    """`ipaddress` of some versions says otherwise of each address but those of multicast and of carriers."""
    assert bool(list(FINDERS["ip"](f'connect("{address}");'.encode()))) == is_routed


def test_the_private_half_of_a_putty_key_is_replaced() -> None:
    text = "PuTTY-User-" + f"Key-File-2: ssh-rsa\nPublic-Lines: 1\n{BODY[:64]}\nPrivate-Lines: 1\n{BODY[4:68]}\n"
    expected = text[::-1].replace(BODY[4:68][::-1], WORDS["secret"].decode()[::-1], 1)[::-1]
    assert redacted(text.encode(), "secret").decode() == expected


@pytest.mark.parametrize(
    "token",
    [
        "AK" + "IA" + BODY.upper()[:16],
        "gh" + "p_" + BODY[:36],
        "gl" + "pat-" + BODY[:20],
        ".".join(["ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiIxIn0", BODY[:43]]),
        "sk-" + BODY[:20] + "T3Blbk" + "FJ" + BODY[:20],
        "xo" + "xb-1234567890-" + BODY[:24],
        "sk_" + "live_" + BODY[:99],
        "//registry.acme.org/:_auth" + "Token=npm_" + BODY[:36],
        "//acme.org/:_auth" + "Token= 0a1b2c3d-0000-1111-2222-0123456789ab",
    ],
)
def test_no_secret_is_left_of_a_token(token: str) -> None:
    text = f'int a;\nauto key = "{token}\\n", again = "{token}\\n";\n'.encode()
    changed, counts = redactor("secret").redact(text)
    assert SecretDetectors().find_secret(text)
    assert SecretDetectors().find_secret(changed) is None
    assert changed.count(WORDS["secret"]) == counts["secret"] == 2
    assert changed.endswith(b'\\n";\n')
    assert BODY[:16].encode() not in changed


@pytest.mark.parametrize("pattern", ["cpp-words-1", "cpp-words-2"])
@pytest.mark.parametrize("word", WORDS.values())
def test_a_word_that_replaces_is_one_word_of_the_patterns(pattern: str, word: bytes) -> None:
    assert cppmill_core.split(pattern, word).to_pylist() == [word]
    for before, after in ((b"<", b">"), (b'"', b'"'), (b"(", b")"), (b'"', b":53"), (b"// ", b",\n")):
        pieces: list[Any] = cppmill_core.split(pattern, before + word + after).to_pylist()
        assert sum(piece.endswith(word) for piece in pieces) == 1


def test_redacted_documents_say_what_they_were_and_how_much_was_replaced(
    tmp_path: Path, out: OutputFolder, run_ingest: Callable[..., Any]
) -> None:
    corpus = tmp_path / "p"
    corpus.mkdir()
    contents = {"a.h": b"// a@acme.org, b@acme.org\n", "b.h": b"// x@acme.org, y@acme.org\n", "c.h": b"int c;\n"}
    for name, content in contents.items():
        (corpus / name).write_bytes(content)
    result = run_ingest([corpus], out, IngestOptions(redact=("email",)))
    rows = {row["path"]: row for row in result.table().to_pylist()}
    assert rows.keys() == {"a.h", "c.h"}, "what is equal once it is redacted is a duplicate"
    changed = rows["a.h"]
    assert changed["content"] == b"// REDACTED_EMAIL, REDACTED_EMAIL\n"
    assert changed["doc_id"] == hashlib.sha256(changed["content"]).hexdigest()
    assert changed["source_doc_id"] == hashlib.sha256(contents["a.h"]).hexdigest()
    assert (changed["redacted_emails"], changed["redacted_ips"], changed["num_bytes"]) == (2, 0, 34)
    assert rows["c.h"]["source_doc_id"] is None
    (receipt,) = result.receipts
    nothing = {"documents": 0, "places": 0}
    assert receipt.totals["redacted"] == {
        "redacted_emails": {"documents": 1, "places": 2},
        "redacted_ips": nothing,
        "redacted_secrets": nothing,
    }


def test_the_size_limit_applies_to_the_bytes_that_are_read_and_to_the_text_afterwards(
    tmp_path: Path, out: OutputFolder, run_ingest: Callable[..., Any]
) -> None:
    corpus = tmp_path / "p"
    corpus.mkdir()
    (corpus / "wide.h").write_bytes("int wide;\n".encode("utf-16"))
    (corpus / "longer.h").write_bytes(b"// a@b.de d@e.fr\n")
    (corpus / "shorter.h").write_bytes(b"// somebody.else@acme.org\n")
    options = IngestOptions(redact=("email",), convert_wide_text=True, max_document_bytes=20)
    result = run_ingest([corpus], out, options)
    assert result.rejects == [(f"{name}.h", "filtered", "size") for name in ("longer", "shorter", "wide")]


def test_what_replaces_is_in_keys_and_what_is_off_is_not(
    tmp_path: Path, out: OutputFolder, run_first_pass: Callable[..., Any]
) -> None:
    (tmp_path / "a.h").write_bytes(b"int a;\n")
    asked = (IngestOptions(redact=("email",)), IngestOptions(redact=("email",), redact_with="same-length"))
    keys = set()
    for options in asked:
        found = run_first_pass([tmp_path / "a.h"], out, options).found
        keys |= {unit.key for unit in plan_ingest(found, out, options, config={}, core_version="1")}
    assert len(keys) == 2
    assert not {"redact", "redact_with"} & IngestOptions().to_json().keys()
