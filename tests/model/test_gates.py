"""No answer that names, calls or stores to more than its original runs; each function passes as its own."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.torch_facts import load
from graphmend.model.gates.form import lost_reads, new_numbers, read
from graphmend.model.gates.original import Original
from graphmend.model.gates.text import Unfit

from .hostile import ANSWERS, MODULE, STATEMENTS

FACTS = load()
ROOT = Path(__file__).resolve().parents[2]


def functions(path: Path, text: str) -> list[tuple[str, dict[str, str]]]:
    """Every function of a file as text, with what the module's names mean."""
    module = Project().read(Source(text, str(path)))
    if module is None:
        return []
    lines = text.splitlines(keepends=True)
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    starts = [min([n.lineno, *(d.lineno for d in n.decorator_list)]) for n in nodes]
    return [
        ("".join(lines[start - 1 : node.end_lineno]), dict(module.imports))
        for node, start in zip(nodes, starts, strict=True)
    ]


@pytest.fixture(scope="module")
def original() -> Original:
    (found,) = [f for f in functions(Path("block.py"), MODULE) if f[0].lstrip().startswith("def forward")]
    return Original(*found)


def with_statement(original: Original, statement: str) -> str:
    lines = textwrap.dedent(original.source).rstrip().splitlines()
    return "\n".join([*lines[:-1], textwrap.indent(statement, "    "), lines[-1]]) + "\n"


def test_there_are_enough() -> None:
    assert len(set(STATEMENTS) | set(ANSWERS)) >= 150


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_hostile_statement_is_refused(original: Original, statement: str) -> None:
    with pytest.raises(Unfit) as refused:
        read(with_statement(original, statement), original, FACTS)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_a_hostile_answer_is_refused(original: Original, answer: str) -> None:
    with pytest.raises(Unfit):
        read(answer, original, FACTS)


GOOD = [
    "h = torch.where(mask.sum() > 0, helper(h, self.scale), h)",
    "h = F.relu(h) + math.sqrt(4.0) * h.clamp(min=0).to(torch.float32)",
    "h = torch.einsum('ij,ij->ij', h, h)",
    "kept = [row * 2 for row in h.unbind(0)]; h = torch.stack(kept)",
    "def then(a):\n    return a + 1\nh = torch.cat([then(h)])",
    "h[mask] = 0",
    "h, places = h.topk(2); h = torch.where(mask, h, 0).sum().values",
    "torch._check(h.shape[0] > 0)",
    "h = helper(h * 3, self.scale * 2)",
    "if path is not None:\n    os.remove(path)",
    "h = h.new_zeros(h.shape, dtype=h.dtype).scatter_add(0, mask.long(), h)",
    "limit = torch.finfo(h.dtype).max; h = h.clamp(-limit, limit)",
]


@pytest.mark.parametrize("statement", GOOD)
def test_a_rewrite_of_tensors_passes(original: Original, statement: str) -> None:
    function = read(with_statement(original, statement), original, FACTS)
    assert lost_reads(function, original) == []


def test_what_is_not_read_any_more_and_what_is_new_is_named(original: Original) -> None:
    shorter = textwrap.dedent(original.source).replace("self.scale", "7.5").replace("mask.sum()", "x.sum()")
    function = read(shorter.replace('logger.warning("masked %s", x.sum())', "pass"), original, FACTS)
    assert lost_reads(function, original) == ["mask", "self.scale"]
    assert new_numbers(function, original) == ["7.5"]


FOLDERS = [ROOT / "examples", ROOT / "runtime", ROOT.parent / "shared" / "truth" / "patterns"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_functions_pass_as_their_own_replacement(folder: Path) -> None:
    if not folder.is_dir():
        pytest.skip(f"{folder.name} is not here")
    number, refused = 0, []
    for path in sorted(folder.rglob("*.py")):
        for source, imports in functions(path, path.read_text(encoding="utf-8")):
            number += 1
            own = Original(source, imports)
            try:
                assert lost_reads(read(source, own, FACTS), own) == []
            except Unfit as error:
                refused.append((path.name, own.function.name, str(error)))
    assert len(refused) <= max(number * 0.005, 1), refused
