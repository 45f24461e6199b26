"""Run `checks/check_run.py` with its one quadratic expression made linear.

    python tests/run_check.py OUT [--sources DIR] [--expect FILE]

The checker shares no code with cppmill and is kept byte for byte as it was published. It builds one set anew for every
token of the vocabulary, and the union of two others for every member of it: 12,288 ids take seven minutes in that
line, 65,536 ids hours. Here that set is made once, under a name that takes the expression's place; everything else
runs as it is written, and a file in which the expression does not stand exactly once is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHECK = Path(__file__).parents[1] / "checks" / "check_run.py"
REBUILT = "{n.encode() for n, k in vocab.items() if k in control | reserved}"
BEFORE = '    report("no token spells a control or reserved name"'


def hoisted(source: str) -> str:
    """Return the source with the rebuilt set made once.

    Raises:
        SystemExit: If the expression does not stand in it exactly once.
    """
    if source.count(REBUILT) != 1 or source.count(BEFORE) != 1:
        raise SystemExit(f"{CHECK}: the expression to hoist is not in it once; run it as it is")
    bound = f"    unused = control | reserved\n    unused_names = {REBUILT.replace('control | reserved', 'unused')}\n"
    return source.replace(REBUILT, "unused_names").replace(BEFORE, bound + BEFORE)


if __name__ == "__main__":
    sys.argv[0] = str(CHECK)
    exec(compile(hoisted(CHECK.read_text(encoding="utf-8")), str(CHECK), "exec"), {"__name__": "__main__"})
