"""Compiled code that runs the original where its graph cannot go on.

A graph that captures a number takes things for granted (a size is not 1, a position lies in the tensor) which it can
only check when it runs. Where it fails, the frame's own code runs instead, with the frame's arguments: nothing else of
the frame has run before its graph, and what the graph wrote is put back. Then the compiled code is never used again.

    def f(x, n):                        def f(x, n):
        return graph(x, n)       ->         try:
                                                return graph(x, n)
                                            except Failed:
                                                pass
                                            return resume((x, n), closure)

Knows Dynamo's tools for bytecode, as they are in torch 2.13, from Python 3.11 on.
"""

from __future__ import annotations

import inspect
import sys
from types import CellType, CodeType, FunctionType
from typing import Any

from torch._dynamo.bytecode_transformation import (
    Instruction,
    cleaned_instructions,
    clear_instruction_args,
    create_build_tuple,
    create_instruction,
    create_load_const,
    transform_code_object,
)

from ..mechanism import hide


class Failed(Exception):
    """A graph that captures numbers could not go on. Only the code that runs it sees this."""


def with_fallback(compiled: CodeType, original: CodeType) -> CodeType:
    """Code that does what `compiled` does, and what `original` does where that raises `Failed`."""

    def transform(instructions: list[Instruction], options: dict[str, Any]) -> None:
        start = _prologue(instructions)
        before, after = _handler(compiled, original)
        instructions[:] = [*instructions[:start], *before, *instructions[start:], *after]

    return transform_code_object(compiled, transform)[0]


def _template(dummy: Any, function: Any, arguments: Any) -> Any:
    try:  # noqa: SIM105
        dummy  # noqa: B018 - the compiled code stands here
    except Failed:
        pass
    return function(arguments)


def _prologue(instructions: list[Instruction]) -> int:
    """How many instructions make a frame ready."""
    return next(i for i, each in enumerate(instructions) if each.opname == "RESUME") + 1


def _handler(compiled: CodeType, original: CodeType) -> tuple[list[Instruction], list[Instruction]]:
    """What stands before the compiled code, and behind it."""
    template = cleaned_instructions(_template.__code__)
    clear_instruction_args(template)
    template = template[_prologue(template) :]
    for each in template:
        each.starts_line, each.positions = None, None
    made: list[Instruction] = []
    middle = 0
    for each in template:
        if each.opname.startswith("LOAD_FAST") and each.argval == "dummy":
            _become(each, "NOP")
            middle = len(made) + 1
        elif each.opname == "POP_TOP" and len(made) == middle:
            _become(each, "NOP")
        elif each.opname == "LOAD_GLOBAL" and each.argval == "Failed":
            _load_constant(each, Failed)
        elif each.opname.startswith("LOAD_FAST") and each.argval == "function":
            _load_constant(each, _Original(original).run)
        elif each.opname.startswith("LOAD_FAST") and each.argval == "arguments":
            made += _arguments(compiled, original)
            continue
        made.append(each)
    return made[:middle], made[middle:]


def _become(instruction: Instruction, name: str, value: Any = None) -> None:
    made = create_load_const(value, checked=False) if name == "LOAD_CONST" else create_instruction(name)
    instruction.opcode, instruction.opname = made.opcode, made.opname
    instruction.arg, instruction.argval = made.arg, made.argval


def _load_constant(instruction: Instruction, value: Any) -> None:
    _become(instruction, "LOAD_CONST", value)


def _arguments(compiled: CodeType, original: CodeType) -> list[Instruction]:
    """Puts one tuple on the stack: the arguments in the frame's order, and the cells of its free variables."""
    names = original.co_varnames[: _count(original)]
    cells = set(compiled.co_cellvars)
    loads = [create_instruction("LOAD_DEREF" if n in cells else "LOAD_FAST", argval=n) for n in names]
    loads += [create_instruction("LOAD_CLOSURE", argval=name) for name in original.co_freevars]
    return [*loads, create_build_tuple(len(loads))]


def _count(code: CodeType) -> int:
    more = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + more


class _Original:
    """The code of a frame, which may be run again."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    def run(self, values: tuple[Any, ...]) -> Any:
        """Runs it with the arguments of a frame, and the cells of its closure."""
        code = self._code
        count = _count(code)
        cells: tuple[CellType, ...] = values[count:]
        scope = sys._getframe(1).f_globals
        function = FunctionType(code, scope, code.co_name, None, cells or None)
        only = code.co_argcount + code.co_kwonlyargcount
        args, rest = list(values[: code.co_argcount]), list(values[only:count])
        kwargs = dict(zip(code.co_varnames[code.co_argcount : only], values[code.co_argcount : only], strict=True))
        if code.co_flags & inspect.CO_VARARGS:
            args += rest.pop(0)
        if code.co_flags & inspect.CO_VARKEYWORDS:
            kwargs |= rest.pop(0)
        return function(*args, **kwargs)


hide(_Original.run.__code__)
