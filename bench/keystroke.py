"""What one keystroke costs the analysis: findings again, in one process, without a server around it.

    python bench/keystroke.py [FILE] [--copies N] [--kind KIND ...]

Statements are typed, one character at a time, into the middle of a model file (transformers' longformer, 2,200 lines),
then into the same file followed by N renamed copies of itself: into a function, a constructor, a header, and between
functions. Prints the CPU time of each keystroke, and that of the longer file as a multiple. The goals: at most 6 ms in
a function, and at most 1.5 times that in a file ten times as long.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import sysconfig
import time
from pathlib import Path

from graphmend.analysis.incremental.document import IncrementalAnalysis
from graphmend.analysis.syntax.edits import Edit

MODEL = Path("transformers/models/longformer/modeling_longformer.py")
#: what is typed, and behind which text
KINDS = {
    "body": (
        "\n        scores = hidden_states.sum() + 1"
        "\n        if scores > 0:\n            hidden_states = hidden_states * 2",
        "        hidden_states = hidden_states.transpose(0, 1)",
    ),
    "constructor": (
        "\n        self.scale = torch.ones(3) * config.hidden_size\n        self.many = config.many_heads",
        "        self.num_heads = config.num_attention_heads",
    ),
    "header": (" window_scale: float = 2.0, other=None,", "        output_attentions=False,"),
    "constant": ("\nMANY_SCALES = torch.ones(3)\nOTHER: int = len('abc')", "logger = logging.get_logger(__name__)"),
    "import": ("\nimport math as mathematics\nfrom os import path as where", "import torch.utils.checkpoint"),
    "comment": ("\n\n# what stands here is a remark\n\n", "        return attention_output"),
}


def keystrokes(text: str, typed: str, behind: str) -> list[float]:
    """CPU milliseconds of each character of `typed`, typed behind the first `behind`."""
    document = IncrementalAnalysis("model.py")
    document.update(text)
    at = text.index(behind) + len(behind)
    costs = []
    for character in typed:
        text = text[:at] + character + text[at:]
        edit = Edit(at, at, 1)
        at += 1
        started = time.thread_time()
        document.update(text, edit)
        costs.append((time.thread_time() - started) * 1000)
    return costs


def main() -> None:
    default = Path(sysconfig.get_path("purelib")) / MODEL
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=default, help="a file that has the lines typed behind")
    parser.add_argument("--copies", type=int, default=9, help="copies in the longer file (default: 9)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this one; may be repeated")
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8")
    classes = "|".join(re.findall(r"^class (\w+)", text, re.MULTILINE))
    copies = (re.sub(rf"\b({classes})\b", rf"\g<1>_{number}", text) for number in range(options.copies))
    gc.disable()  # a collection falls on a key by chance; the server collects while it is idle
    texts = (text, text + "".join(copies))
    for kind in options.kind or KINDS:
        p50 = []
        for whole in texts:
            costs = sorted(keystrokes(whole, *KINDS[kind]))
            p50.append(statistics.median(costs))
            figures = (
                f"p50 {p50[-1]:6.2f} ms, p95 {costs[int(len(costs) * 0.95)]:6.2f} ms, max {costs[-1]:6.2f} ms a key"
            )
            print(f"{kind:<12}{whole.count(chr(10)):7,} lines: {figures}")
        print(f"{kind:<12}the longer file: {p50[1] / p50[0]:.2f} times")


if __name__ == "__main__":
    main()
