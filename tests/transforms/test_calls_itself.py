"""Records that hold records of their own kind, and functions that call themselves more than once, come to an end."""

from __future__ import annotations

from graphmend.analysis.syntax.source import Source
from graphmend.transforms.mend import mend_all

TREE = """
from typing import NamedTuple, Optional, Union
import torch

class Node(NamedTuple):
    feature: int
    threshold: float
    left: Union["Node", float]
    right: Union["Node", float]
    parent: Optional["Node"]

TREE = Node(0, 0.0, Node(1, 0.5, -1.0, 0.25, None), 2.0, None)

def predict(node: Node, row: torch.Tensor):
    if isinstance(node, float):
        return torch.full((), node)
    if row[node.feature] <= node.threshold:
        return predict(node.left, row)
    return predict(node.right, row)

@torch.compile
def case(row: torch.Tensor):
    return predict(TREE, row)
"""


def test_a_tree_of_records_that_is_walked_by_recursion() -> None:
    """Either took time that doubled with each level, up to the deepest that Python permits."""
    mended = mend_all(Source(TREE, "model.py"), unsafe=True)
    assert [finding.code for finding, _ in mended.left] == ["GM101"]
