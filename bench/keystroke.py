"""What one keystroke costs the analysis: findings again, in one process, without a server around it.

    python bench/keystroke.py [FILE] [--copies N]

Statements are typed, one character at a time, into the middle of a function of a model file (transformers' longformer,
2,100 lines), then into the same file followed by N renamed copies of itself. Prints the CPU time of each keystroke, and
that of the longer file as a multiple. The goals: at most 6 ms, and at most 1.5 times that in a file ten times as long.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import sysconfig
import time
from pathlib import Path

from graphmend.analysis.incremental import Document

MODEL = Path("transformers/models/longformer/modeling_longformer.py")
TYPED = (
    "scores = hidden_states.sum() + 1\n        if scores > 0:\n            hidden_states = hidden_states * 2\n        "
)
BEFORE = "        hidden_states = hidden_states.transpose(0, 1)"


def keystrokes(text: str) -> list[float]:
    """CPU milliseconds of each character of `TYPED`, typed before the first `BEFORE`."""
    document = Document("model.py")
    document.update(text)
    at = text.index(BEFORE) + len(BEFORE) - len(BEFORE.lstrip())
    costs = []
    for character in TYPED:
        text = text[:at] + character + text[at:]
        at += 1
        started = time.process_time()
        document.update(text)
        costs.append((time.process_time() - started) * 1000)
    return costs


def main() -> None:
    default = Path(sysconfig.get_path("purelib")) / MODEL
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=default, help="a file that has the line typed before")
    parser.add_argument("--copies", type=int, default=9, help="copies in the longer file (default: 9)")
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8")
    classes = "|".join(re.findall(r"^class (\w+)", text, re.MULTILINE))
    copies = (re.sub(rf"\b({classes})\b", rf"\g<1>_{number}", text) for number in range(options.copies))
    gc.disable()  # a collection falls on a key by chance; the server collects while it is idle
    p50 = []
    for whole in (text, text + "".join(copies)):
        costs = sorted(keystrokes(whole))
        p50.append(statistics.median(costs))
        print(
            f"{whole.count(chr(10)):7,} lines: p50 {p50[-1]:.2f} ms, p95 {costs[int(len(costs) * 0.95)]:.2f} ms a key"
        )
    print(f"the longer file: {p50[1] / p50[0]:.2f} times")


if __name__ == "__main__":
    main()
