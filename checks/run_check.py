"""Run `check_run.py` with its one quadratic expression made linear.

The expression is a set that does not change while it is used, built anew for every token. It is replaced by a name
that is bound to the same set beforehand; everything else runs as it is written.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHECK = Path(__file__).with_name("check_run.py")
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
