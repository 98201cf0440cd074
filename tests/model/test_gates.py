"""No answer that names, calls or stores to more than its original runs; each function passes as its own."""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.torch_facts import load
from graphmend.model import splice
from graphmend.model.gates.boundaries import moved
from graphmend.model.gates.form import lost_reads, new_numbers, read
from graphmend.model.gates.original import Original
from graphmend.model.gates.text import Unfit, function_of
from graphmend.model.subject import Extent

from . import hostile_forms
from .hostile import ANSWERS, MODULE, STATEMENTS
from .hostile_layers import HOSTS, Host

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


FORMS = {
    **{
        name: hostile_forms.HEAD + textwrap.indent(each, "    ") + hostile_forms.TAIL
        for name, each in hostile_forms.STATEMENTS.items()
    },
    **hostile_forms.ANSWERS,
}


@pytest.fixture(scope="module")
def base() -> Original:
    every = functions(Path("base.py"), hostile_forms.MODULE)
    (found,) = [f for f in every if f[0].lstrip().startswith("def forward")]
    return Original(*found)


@pytest.mark.parametrize("name", FORMS)
def test_a_hostile_form_is_refused(base: Original, name: str) -> None:
    with pytest.raises(Unfit):
        read(FORMS[name], base, FACTS)


def test_the_honest_part_of_the_hostile_forms_passes(base: Original) -> None:
    assert passed(hostile_forms.HEAD + hostile_forms.TAIL, base)


def host_original(host: Host) -> Original:
    name = f"def {host.function}("
    (found,) = [f for f in functions(Path("host.py"), host.module) if f[0].lstrip().startswith(name)]
    return Original(*found)


def passed(answer: str, original: Original) -> bool:
    try:
        return lost_reads(read(answer, original, FACTS), original) == []
    except Unfit:
        return False


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.function)
def test_what_a_layer_does_not_do_is_refused(host: Host) -> None:
    original = host_original(host)
    assert passed(textwrap.dedent(original.source), original)
    assert [each for each in host.statements if passed(with_statement(original, each), original)] == []


WRAPPED = [
    "if True:\n    {}",
    "for again in range(1):\n    {}",
    "while True:\n    {}\n    break",
    "def then():\n    {}\nthen()",
]
INSIDE = [
    "value = ({})",
    "(value := ({}))",
    "[({}) for again in range(1)]",
    "value = 1 if ({}) else 2",
    "value = {{1: [*[({})]]}}",
    "value = torch.where(torch.ones(1), ({}), 0)",
    "sorted([1], key=lambda each: ({}))",
    "torch._check(({}))",
]


def mutations(statement: str, original: Original) -> Iterator[str]:
    """A hostile statement within others, as a part of an expression, and at the first place."""
    yield from (form.format(statement.replace("\n", "\n    ")) for form in WRAPPED)
    try:
        (only,) = ast.parse(statement).body
    except (SyntaxError, ValueError, RecursionError):
        return
    if isinstance(only, ast.Expr) and not isinstance(only.value, ast.Name | ast.Constant):
        yield from (form.format(ast.unparse(only)) for form in INSIDE)


@pytest.mark.many
@pytest.mark.parametrize("start", range(4))
def test_no_mutation_of_a_hostile_answer_passes(original: Original, start: int) -> None:
    every = [(original, each) for each in STATEMENTS]
    every += [(host_original(host), each) for host in HOSTS for each in host.statements]
    through = []
    for own, statement in every[start::80]:
        lines = textwrap.dedent(own.source).rstrip().splitlines()
        first = own.function.body[1 if ast.get_docstring(own.function) else 0].lineno - 1
        texts = [with_statement(own, each) for each in mutations(statement, own)]
        texts.append("\n".join([*lines[:first], textwrap.indent(statement, "    "), *lines[first:]]) + "\n")
        through += [text for text in texts if passed(text, own)]
    assert through == []


def test_a_text_over_several_lines_stays_as_it_was() -> None:
    """The gate `text`: an answer is judged without the indentation that its place in the file gives it back."""
    old = 'def f(x):\n    told = """one\n    two"""\n    return x, told\n'
    new = old.replace("x, told", "told, x")
    indented = textwrap.indent(old, "    ")
    source = Source(f"class A:\n{indented}", "a.py")
    function = read(new, Original(indented, {}), FACTS)
    span, text = splice.edit(source, Extent(2, 5), new, function)
    assert span.line == 2
    assert text == textwrap.indent(new, "    ").rstrip("\n")
    with pytest.raises(Unfit, match="over several lines"):
        splice.edit(source, Extent(2, 5), old, function)  # another text than was judged


def test_a_text_that_begins_further_left_than_its_function_is_read() -> None:
    source = '    def f(self, x):\n        told = """one\ntwo"""\n        return x, told\n'
    original = Original(source, {})
    assert original.strings == {"one\ntwo"}
    assert original.function.lineno == 1
    answer = 'def f(self, x):\n    told = """one\ntwo"""\n    return told, x\n'
    assert lost_reads(read(answer, original, FACTS), original) == []


def test_names_that_double_at_each_step_take_no_time(original: Original) -> None:
    """One step names the last one twice: asked twice at each of them, they would take for ever."""
    chain = "\n".join(f"v{i} = v{i - 1} + v{i - 1}" for i in range(1, 60))
    assert not passed(with_statement(original, f"v0 = path\n{chain}\npath = v59\nos.remove(path)"), original)


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


ORDERS = [
    ("x.max().item() > top", "x.max() >= top", "top <= x.max()"),
    ("x.max().item() > top", "x.max().ge(top)", "top <= x.max()"),
    ("x.max().item() > top", "torch.greater_equal(x.max(), top)", "top <= x.max()"),
    ("x.max() > top", "torch.ge(x.max(), other=top)", "top <= x.max()"),
    ("x.max() > top", "x.max().ge(other=top)", "top <= x.max()"),
    ("x.max() > top", "torch.ge(input=x.max(), other=top)", "top <= x.max()"),
    ("x.max() > top", "x.ge() | x.ge(*n) | x.ge(x, top, n)", None),
    ("float(n) <= 3", "torch.where(3 > n, x, top)", "n < 3"),
    ("0 < x <= top", "(0 < x) & (x < top)", "x < top"),
    ("x.max() > top", "x.max() > top", None),
    ("x.max() > top", "top < x.max()", None),
    ("x.max() > top", "~(x.max() <= top)", None),  # NaN alone, which every comparison has
    ("x.max() > top", "x.min() >= top", None),
    ("x > top or x >= top", "x >= top", None),
    ("n == 0", "n > 0", None),
    ("x.max() > top", "x.lt(top, n)", None),
]


@pytest.mark.parametrize(("before", "after", "says"), ORDERS)
def test_what_differs_where_both_sides_are_equal_is_seen(before: str, after: str, says: str | None) -> None:
    head = "def f(x, n, top):\n    return "
    found = moved(function_of(head + after), function_of(head + before))
    assert (str(found[0]) if found is not None else None) == says


def installed(package: str, *inside: str) -> Path:
    """A folder of a package, which is not imported for it."""
    found = importlib.util.find_spec(package)
    assert found is None or found.submodule_search_locations is not None
    return Path(*(found.submodule_search_locations or ())[:1] if found is not None else "-", *inside)


FOLDERS = [
    ROOT / "examples",
    ROOT / "runtime",
    installed("torch", "nn", "modules"),
    ROOT.parent / "shared" / "truth" / "patterns",
]


@pytest.mark.many
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
                function = read(source, own, FACTS)
                assert lost_reads(function, own) == []
                assert moved(function, own.function) is None
            except Unfit as error:
                refused.append((path.name, own.function.name, str(error)))
    assert len(refused) <= max(number * 0.005, 1), refused
