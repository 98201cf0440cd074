"""Makes a wrong program small: statements, expressions and inputs go as long as it stays wrong in the same way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz_mends import mending
from fuzz_mends.mending import Text
from fuzz_mends.program import Program
from fuzz_mends.verdict import Wrong, compared

#: programs that are tried for one that is made small
_TRIES = 350


def shrunk(wrong: Wrong, tries: int = _TRIES) -> Wrong:
    """The smallest wrong program that was found on the way."""
    left = [tries]
    first = min(wrong.differences.values())
    single = wrong.program.changed(rows=(wrong.program.rows[min(first, len(wrong.program.rows) - 1)],))
    best = _still(wrong, single, left) or wrong
    best = _still(wrong, best.program.changed(text=ast.unparse(ast.parse(best.program.text))), left) or best
    progress = True
    while progress and left[0] > 0:
        progress, position = False, 0
        while left[0] > 0:
            text = _smaller(best.program.text, position)
            if text is None:
                break
            found = _still(wrong, best.program.changed(text=text), left) if text != best.program.text else None
            if found is None:
                position += 1
            else:
                best, progress = found, True
    return best


def _still(wrong: Wrong, program: Program, left: list[int]) -> Wrong | None:
    """The same wrong in another program, if it is there."""
    left[0] -= 1
    if wrong.mode == "crash":
        return _crash(wrong, program)
    for text in _mended(program, wrong):
        if text.text == program.text or not set(text.rewrites) <= set(wrong.rewrites):
            continue
        found, fine = compared(program, text, wrong.mode)
        if not fine and found.keys() & wrong.differences.keys():
            said = [f"{fix.rewrite} ({fix.applicability}): {fix.reason}" for fix in text.fixes]
            return Wrong(program, wrong.mode, text.text, text.rewrites, found, said)
    return None


def _crash(wrong: Wrong, program: Program) -> Wrong | None:
    try:
        mending.mended(program.text, unsafe=True)
        mending.offered(program.text)
    except Exception as error:
        kind = type(error).__name__
        if any(what.startswith(kind) for what in wrong.differences):
            return replace(wrong, program=program)
    return None


def _mended(program: Program, wrong: Wrong) -> list[Text]:
    try:
        if wrong.mode.startswith("offered"):
            return [t for t in mending.offered(program.text) if t.rewrites == wrong.rewrites][:3]
        return [mending.mended(program.text, unsafe=wrong.mode.startswith("unsafe"))]
    except Exception:
        return []


def _smaller(text: str, position: int) -> str | None:
    """The text after the change number `position` of those that make it smaller; None past the last one."""
    tree = ast.parse(text)
    for number, change in enumerate(_changes(tree)):
        if number == position:
            change()
            ast.fix_missing_locations(tree)
            try:
                return ast.unparse(ast.parse(ast.unparse(tree)))
            except (SyntaxError, ValueError):
                return text
    return None


Change = Callable[[], None]


def _changes(tree: ast.Module) -> Iterator[Change]:
    """Whole statements first, then what stands around others, then parts of expressions."""
    blocks = [(node, name) for node in ast.walk(tree) for name in ("body", "orelse", "finalbody") if _block(node, name)]
    for node, name in blocks:
        for i in range(len(getattr(node, name))):
            yield lambda node=node, name=name, i=i: _delete(node, name, i)  # type: ignore[misc]
    for node, name in blocks:
        for i, statement in enumerate(getattr(node, name)):
            if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
                for inner in ("body", "orelse"):
                    if getattr(statement, inner, None):
                        yield lambda node=node, name=name, i=i, s=statement, inner=inner: _unwrap(  # type: ignore[misc]
                            getattr(node, name), i, getattr(s, inner)
                        )
    for parent in list(ast.walk(tree)):
        for field, value in ast.iter_fields(parent):
            values = value if isinstance(value, list) else [value]
            for i, child in enumerate(values):
                if not isinstance(child, ast.expr):
                    continue
                for part in _parts(child):
                    yield lambda p=parent, f=field, v=value, i=i, part=part: _put(p, f, v, i, part)  # type: ignore[misc]
    for node in list(ast.walk(tree)):
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1 and isinstance(node.ctx, ast.Load):
            for i in range(len(node.elts)):
                yield lambda n=node, i=i: n.elts.pop(i)  # type: ignore[misc]
        if isinstance(node, ast.Call) and node.keywords:
            for i in range(len(node.keywords)):
                yield lambda n=node, i=i: n.keywords.pop(i)  # type: ignore[misc]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.decorator_list:
            for i in range(len(node.decorator_list)):
                yield lambda n=node, i=i: n.decorator_list.pop(i)  # type: ignore[misc]


def _block(node: ast.AST, name: str) -> bool:
    block = getattr(node, name, None)
    return isinstance(block, list) and bool(block) and isinstance(block[0], ast.stmt)


def _delete(node: ast.AST, name: str, i: int) -> None:
    block = getattr(node, name)
    del block[i]
    if not block and name == "body":
        block.append(ast.Pass())


def _unwrap(block: list[ast.stmt], i: int, inner: list[ast.stmt]) -> None:
    block[i : i + 1] = inner


def _parts(node: ast.expr) -> list[ast.expr]:
    """Expressions that may stand for one that they are a part of."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.BoolOp(values=values):
            return values
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "F" | "self" | "nn")), args=[first, *_]):
            return [first]
        case ast.Call(func=ast.Attribute(value=value), args=[]):
            return [value]
        case ast.Call(func=ast.Attribute(value=value), args=args):
            return [value, *args]
        case ast.Call(func=ast.Name(), args=[first, *_]):
            return [first]
        case ast.JoinedStr(values=values):
            return [v.value for v in values if isinstance(v, ast.FormattedValue)]
        case ast.Subscript(value=value) if not isinstance(node.ctx, ast.Store):
            return [value]
        case ast.NamedExpr(value=value):
            return [value]
        case ast.Tuple(elts=[only], ctx=ast.Load()):
            return [only]
    return []


def _put(parent: ast.AST, field: str, value: object, i: int, part: ast.expr) -> None:
    part = copy.deepcopy(part)
    if isinstance(value, list):
        value[i] = part
    else:
        setattr(parent, field, part)
