"""Comments: those elsewhere stay to the byte, those inside a replaced range are carried over, each once."""

from __future__ import annotations

import io
import tokenize
from collections import Counter

import pytest
from judge import mend_text

BRANCHES = """\
    # before
    if x.sum() > 10:  # taken
        # inside
        y = x + 1  # plus
        # end of the first
    # between
    elif x.sum() > 0:  # second
        y = x + 2  # plus
    # between
    else:  # other
        # inside the other
        y = x - 1  # minus
        # end of the other
    # after
    return y
"""
GUARD = """\
    if (x > 10).any():  # guard
        # why
        raise ValueError("a")  # raised
        # end of the guard
    # between
    elif x.ndim == 5:  # second
        # in
        x = x + 2  # more
        # end of the second
    # over
    return x
"""
LOOPS = """\
    while x.sum() < 3:  # loop
        # add
        x = x + 1  # one
        # end of the loop
    for i in range(3):
        # one
        if x.sum() > 3:  # enough
            # stop
            break  # now
            # end of the break
        # three
        x = x * 2  # twice
        # end
    return x
"""
OUTPUT = """\
    if x.sum() > 0:
        # said
        print("a")  # loud
        # behind
    else:
        # quiet
        print("b")
        # end
    return x
"""
RETURNS = """\
    p = x[x > 0]  # the positive
    # use
    t = p.sum()
    if x.sum() > 0:
        # early
        return x  # as is
        # never
    # rest
    y = x * 2  # double
    # last
    return y + t  # end
"""


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("body", [BRANCHES, GUARD, LOOPS, OUTPUT, RETURNS])
def test_no_comment_is_lost(body: str, newline: str) -> None:
    examples = "def example_inputs():\n    return [(torch.ones(3),)]\n"
    text = f"import torch\n\n\n@torch.compile\ndef case(x):\n{body}\n\n{examples}"
    mended = mend_text(text.replace("\n", newline))
    assert mended.changed
    after = mended.source.text
    assert comments(after.replace("\r\n", "\n")) == comments(text), after
    assert after.count("\n") == after.count(newline)


def test_a_comment_that_ends_a_block_is_indented_like_what_replaced_it() -> None:
    text = f"import torch\n\n\n@torch.compile\ndef case(x):\n{BRANCHES}"
    after = mend_text(f"{text}\n\ndef example_inputs():\n    return [(torch.ones(3),)]\n").source.text
    assert "# minus\n    # end of the other\n    # after\n    return y\n" in after
