"""The allow-list of licences: expressions, tags, what tells none; on real headers too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from schemas.options import IngestOptions
from schemas.reasons import Filtered
from transforms.filters import make_judge
from transforms.licenses import AllowList, find_tags


@pytest.mark.parametrize(
    ("allowed", "expression", "expected"),
    [
        (["MIT"], "MIT", True),
        (["MIT"], "mit", True),
        (["MIT"], "ISC", False),
        (["MIT"], "GPL-3.0-only OR MIT", True),
        (["MIT"], "GPL-3.0-only AND MIT", False),
        (["MIT", "ISC"], "(MIT AND ISC) OR GPL-3.0-only", True),
        (["MIT", "ISC"], "MIT AND (ISC OR GPL-3.0-only)", True),
        (["ISC"], "MIT AND (ISC OR GPL-3.0-only)", False),
        (["Apache-2.0"], "Apache-2.0 WITH LLVM-exception", True),
        (["Apache-2.0 WITH LLVM-exception"], "Apache-2.0 WITH LLVM-exception", True),
        (["Apache-2.0 WITH LLVM-exception"], "Apache-2.0", False),
        (["GPL-2.0-only"], "GPL-2.0", True),
        (["GPL-2.0"], "GPL-2.0-only", True),
        (["GPL-2.0-only"], "GPL-2.0+", True),
        (["GPL-2.0-only"], "GPL-2.0-or-later", True),
        (["GPL-2.0-or-later"], "GPL-2.0-only", False),
        (["GPL-3.0-only"], "GPL-2.0-only", False),
        (["Apache-1.0"], "Apache-1.0+", True),
        (["LicenseRef-Ours"], "LicenseRef-Ours", True),
        (["MIT"], "LicenseRef-Ours", False),
        (["MIT"], "MIT/X11", False),
        (["Apache-2.0"], "Apache 2.0", False),
        (["MIT"], "MIT OR", False),
        (["MIT"], "(", False),
    ],
)
def test_an_expression_is_allowed_if_one_may_choose_what_is(
    allowed: list[str], expression: str, expected: bool
) -> None:
    assert AllowList(tuple(allowed), unlicensed="drop").allows(expression) is expected


@pytest.mark.parametrize(
    ("head", "expression"),
    [
        (b"// SPDX-License-Identifier: MIT\n", "MIT"),
        (b"/* SPDX-License-Identifier: GPL-2.0+ */\n", "GPL-2.0+"),
        (b" * SPDX-License-Identifier: (GPL-2.0-only OR MIT)\r\n", "(GPL-2.0-only OR MIT)"),
        (b"// SPDX-License-Identifier: MIT\n// SPDX-License-Identifier: MIT\n", "MIT"),
        (b"// SPDX-License-Identifier: MIT\n// SPDX-License-Identifier: ISC OR X11\n", "(MIT) AND (ISC OR X11)"),
        (b"// SPDX-License-Identifier:\nint MIT;\n", None),
        (b"// Licensed under the MIT licence\n", None),
        (b"\n" * 4096 + b"// SPDX-License-Identifier: MIT\n", None),
    ],
)
def test_the_tags_of_a_head_are_one_expression(head: bytes, expression: str | None) -> None:
    assert find_tags(head) == expression


@pytest.mark.parametrize("unlicensed", ["keep", "drop"])
@pytest.mark.parametrize("license_name", [None, "", "NOASSERTION", "NONE"])
def test_what_tells_no_licence_is_as_one_wants_it(unlicensed: str, license_name: str | None) -> None:
    options = IngestOptions.model_validate({"allowed_licenses": ("MIT",), "unlicensed": unlicensed})
    found = make_judge(options)(b"int a;\n", license_name)
    assert found.reason == ("" if unlicensed == "keep" else Filtered.LICENSE)
    assert found.detail == ("" if unlicensed == "keep" else "tells no licence")


def test_the_source_knows_better_than_the_file() -> None:
    judge = make_judge(IngestOptions(allowed_licenses=("MIT",)))
    assert judge(b"// SPDX-License-Identifier: GPL-3.0-only\n", "MIT").reason == ""
    found = judge(b"// SPDX-License-Identifier: MIT\n", "GPL-3.0-only")
    assert (found.reason, found.detail) == (Filtered.LICENSE, "the source says GPL-3.0-only")


def test_the_tags_of_real_headers_are_read() -> None:
    headers = sorted(Path(pa.get_include()).rglob("*.h*"))
    judge = make_judge(IngestOptions(allowed_licenses=("Apache-2.0",)))
    details = {judge(path.read_bytes(), None).detail for path in headers}
    assert "tagged 0BSD" in details
    assert "tells no licence" in details
    assert not [detail for detail in details if "Apache-2.0" in detail]
