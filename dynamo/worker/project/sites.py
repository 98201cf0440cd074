"""How the files of a project make objects of a class, and call them: scripts, tests, notebooks, other modules."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
from collections.abc import Callable
from typing import Any

from . import data_files, files
from .expressions import TooLong
from .statements import Statements
from .values import NAMESPACES, UNKNOWN, Call, Class, Function, Instance, known

MOST_SECONDS = 2.0
MOST_SITES = 6
FARTHEST = 5
"""Steps from a class or function to what makes it, to what calls that."""
_TESTS = ("setUp", "setup_method", "setup")


class Site:
    """One place that makes an object of the class, and the calls of that object; the file's name, for people."""

    def __init__(self, made: Instance, calls: list[Call], path: str) -> None:
        self.made = made
        self.calls = calls
        self.path = path


def sites(path: str, name: str, resize: Callable[[int], int], held_as: str | None = None) -> list[Site]:
    """The constructions of a class of a file, those first whose arguments are known and that are called. `held_as` is
    the name by which other files know an object of it.
    """
    machine, found = _executed(path, name, resize, held_as)
    all_made = [made for made in machine.made if not _is_part_of_itself(made)]
    both = [Site(made, [c for c in machine.called if c.instance is made], found[id(made)]) for made in all_made]
    return sorted(both, key=_unknowns)[:MOST_SITES]


def calls(path: str, name: str, resize: Callable[[int], int]) -> list[tuple[Call, str]]:
    """The calls of a function of a file, and the files that lead to them."""
    machine, found = _executed(path, name, resize)
    told = [call for call in machine.called if any(a is not UNKNOWN for a in (*call.args, *call.kwargs.values()))]
    told.sort(key=lambda call: not known([call.args, call.kwargs]))
    return [(call, found[id(call)]) for call in told][:MOST_SITES]


def _executed(
    path: str, name: str, resize: Callable[[int], int], held_as: str | None = None
) -> tuple[Statements, dict[int, str]]:
    """All of a project that concerns a class or function of a file, executed; by the identity of what was made and
    called, the file that led to it.
    """
    real, root = os.path.realpath(path), os.path.realpath(files.root(path))
    machine = Statements(resize, lambda each: _is(each, name, real), root)
    limit = files.Limit(MOST_SECONDS)
    found: dict[int, str] = {}
    leading = {real, *map(os.path.realpath, _leading_to(root, {name, held_as or name}, limit.part(1 / 2)))}
    paths = sorted(leading, key=lambda p: (p == real, p))
    for step in (_read, _enter_all):
        for each in paths:
            step(machine, each, limit)
            for new in (*machine.made, *machine.called):
                found.setdefault(id(new), os.path.relpath(each, root))
    return machine, found


def _is(each: Class | Function, name: str, path: str) -> bool:
    return getattr(each.node, "name", None) == name and each.scope.path == path


def _leading_to(root: str, names: set[str], limit: files.Limit) -> list[str]:
    """The files that name a class or function, or what makes and calls it: `build_model`, which others call. Those
    that are found in time.
    """
    found = dict.fromkeys(_scripts(root, limit) if _in_settings(root, names) else ())
    for _ in range(FARTHEST):
        naming = _naming(root, names, limit)
        found.update(dict.fromkeys(naming))
        in_time = itertools.takewhile(lambda _: not limit.is_over, naming)
        more = {maker for each in in_time for maker in _makers(each, names)} - names
        if not more:
            break
        names |= more
    return list(found)


def _naming(root: str, names: set[str], limit: files.Limit) -> list[str]:
    """The files in whose code one of the names stands."""
    word = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b")
    return [each for each in files.walk(root, files.WITH_CODE, limit=limit) if word.search(files.text_of(each))]


def _in_settings(root: str, names: set[str]) -> bool:
    """Whether a file of settings names one: then code may make it that does not name it."""
    word = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b")
    return any(word.search(files.text_of(each)) for each in data_files.settings_of(root))


_STARTS = re.compile(r"__main__|\bargparse\b|\bhydra\b|\bsys\.argv\b")
MOST_SCRIPTS = 12


def _scripts(root: str, limit: files.Limit) -> list[str]:
    """The files from which programs of a project are started."""
    scripts = (each for each in files.walk(root, files.WITH_CODE, limit=limit) if _STARTS.search(files.text_of(each)))
    return list(itertools.islice(scripts, MOST_SCRIPTS))


def _makers(path: str, names: set[str]) -> list[str]:
    """What a file's top level defines with one of the names in it, and what keeps one by a name that it is given: a
    table, a decorator, the table of a decorator.
    """
    tree = files.tree_of(path)
    found: list[str] = []
    variables: set[str] = set()
    for node in tree.body if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            variables.update(own)
            found += own if node.value is not None and _read_in(node.value) & names else []
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inside = set().union(*map(_read_in, (*node.body, *getattr(node, "bases", ()))))
            found += [node.name] if inside & names and node.name != "main" else []
            if node.name in names:
                found += [n for each in node.decorator_list for n in _read_in(each) if n not in _NO_TABLES]
                found += sorted(inside & variables) if isinstance(node, ast.FunctionDef) else []
    return found


_NO_TABLES = frozenset({"dataclass", "dataclasses", "torch", "staticmethod", "property", "functools", "nn"})


def _read_in(node: ast.AST) -> set[str]:
    """The names that are read in a node, those behind a dot, too: `models.Net`."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def _read(machine: Statements, path: str, limit: files.Limit) -> None:
    """A file's top level."""
    if limit.is_over:
        return
    machine.steps = _STEPS
    with contextlib.suppress(TooLong, RecursionError):
        machine.module(path)


def _enter_all(machine: Statements, path: str, limit: files.Limit) -> None:
    """What nobody calls in a file: `main`, tests, methods."""
    for function in list(machine.functions):
        new = id(function.node) not in machine.entered or function.has_decorator("config_name")
        if new and function.scope.path == path and not limit.is_over:
            machine.steps = _STEPS
            with contextlib.suppress(TooLong, RecursionError):
                _enter(machine, function)


_STEPS = 20_000


def _enter(machine: Statements, function: Function) -> None:
    if function.home is not None and not machine.watched(function.home):
        owner = Instance(function.home, [], {})
        for name in ("__init__", *_TESTS):
            made = function.home.get(name)
            if isinstance(made, Function) and made.node is not function.node:
                machine.invoke(made.bound(owner), [], {})
        machine.invoke(function.bound(owner), [], _given(machine, function))
    elif function.home is None:
        machine.invoke(function, [], _given(machine, function))


def _given(machine: Statements, function: Function) -> dict[str, Any]:
    """What a framework of tests or scripts would give: fixtures, the first of the parameters, a named configuration."""
    found: dict[str, Any] = {}
    for argument in function.node.args.args:
        fixture = function.scope.get(argument.arg)
        if isinstance(fixture, Function) and fixture.has_decorator("fixture"):
            found[argument.arg] = machine.invoke(fixture, [], {})
        elif _SETTINGS.match(argument.arg):
            found[argument.arg] = _settings(machine, argument.arg)
    for decorator in getattr(function.node, "decorator_list", ()):
        if isinstance(decorator, ast.Call):
            args = [machine.value(each, function.scope) for each in decorator.args]
            named = {k.arg: machine.value(k.value, function.scope) for k in decorator.keywords}
            found.update(_parametrized(args) or _configured(machine, function, named))
    return found


_SETTINGS = re.compile(r"(config|cfg|args|hparams|params|conf|opt|options)s?$")


def _settings(machine: Statements, name: str) -> Any:
    """Settings that a module of the project holds under a parameter's name: in most programs there are no others."""
    for module in list(machine.modules.values()):
        value = module.names.get(name, UNKNOWN)
        plain = (isinstance(value, dict) and value) or isinstance(value, NAMESPACES)
        if plain or (isinstance(value, Instance) and value.fields):
            return value
    return UNKNOWN


def _parametrized(args: list[Any]) -> dict[str, Any]:
    if len(args) != 2 or not isinstance(args[1], (list, tuple)) or not args[1]:
        return {}
    names = args[0].split(",") if isinstance(args[0], str) else list(args[0] or ())
    first = args[1][0] if len(names) > 1 else (args[1][0],)
    return dict(zip(map(str.strip, names), first))  # noqa: B905


def _configured(machine: Statements, function: Function, named: dict[str | None, Any]) -> dict[str, Any]:
    """`@main(config_path="conf", config_name="train")`: the file's settings are the argument."""
    name = named.get("config_name")
    if not isinstance(name, str) or not function.node.args.args:
        return {}
    folder = os.path.join(os.path.dirname(function.scope.path), named.get("config_path") or "")
    endings = ("",) if name.endswith((".yaml", ".yml", ".json")) else (".yaml", ".yml")
    data = [data_files.composed(os.path.join(folder, name + ending), machine.resize) for ending in endings]
    return {function.node.args.args[0].arg: next((d for d in data if d is not UNKNOWN), UNKNOWN)}


def _unknowns(site: Site) -> tuple[int, int]:
    given = [*site.made.args, *site.made.kwargs.values()]
    called = [a for call in site.calls for a in (*call.args, *call.kwargs.values())]
    return sum(a is UNKNOWN for a in given), -sum(a is not UNKNOWN for a in called)


def _is_part_of_itself(made: Instance) -> bool:
    return isinstance(made.cls, Class) and bool(made.args) and all(a is UNKNOWN for a in made.args) and not made.kwargs
