"""Ctrl-C ends long calls while they work, not after."""

import subprocess
import sys
from pathlib import Path

# The handler raises at the second signal: signals that come while nobody looks count as one.
SCRIPT = """
import os, random, signal, sys, threading, time
import pyarrow as pa
from cppmill_core import Tokenizer

tokenizer = Tokenizer.from_dir(sys.argv[1])
word = random.Random(1).randbytes(8_000_000).translate(bytes(97 + byte % 26 for byte in range(256)))
text = b"int x = foo(bar);\\n" * 100_000
lists = pa.ListArray.from_arrays([0, 30_000_000], pa.repeat(pa.scalar(300, pa.uint16()), 30_000_000))
calls = {
    "encode": lambda: tokenizer.encode(word),
    "count": lambda: tokenizer.count(word),
    "encode_batch": lambda: tokenizer.encode_batch([text] * 60),
    "encode_batch in threads": lambda: tokenizer.encode_batch([text] * 120, threads=2),
    "count_batch": lambda: tokenizer.count_batch([text] * 300, threads=2),
    "decode_batch": lambda: tokenizer.decode_batch(lists),
    "decode": lambda: tokenizer.decode(lists.values),
}

def handler(*_):
    seen.append(1)
    if len(seen) == 2:
        raise KeyboardInterrupt

def send():
    while sending:
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, handler)
for name, call in calls.items():
    seen, sending = [], [1]
    sender = threading.Thread(target=send)
    sender.start()
    try:
        call()
        print(name, "was not ended")
    except KeyboardInterrupt:
        print(name, "was ended")
    sending.clear()
    sender.join()
"""


def test_a_signal_ends_every_long_call(directory: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(directory)]
    ended = subprocess.run(command, capture_output=True, check=False, text=True, timeout=200)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert len(lines) == 7, lines
    assert all(line.endswith("was ended") for line in lines), lines
