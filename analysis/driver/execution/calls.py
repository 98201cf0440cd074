"""Calls in driver code: functions and classes of the program are executed, what compiles is noted, and of others it is
asked what they do with the modules that they are given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.driver import frameworks as facts
from graphmend.analysis.driver.execution.builtins import (
    BUILTINS,
    container_method,
    module_method,
    reduced,
    text_method,
)
from graphmend.analysis.driver.execution.constructors import compile_given, construct, initialise
from graphmend.analysis.driver.execution.interface import Machine
from graphmend.analysis.driver.execution.members import children, descendants, external_base, is_module
from graphmend.analysis.driver.execution.objects import (
    ANY,
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Disabled,
    Method,
    Named,
    Object,
    Partial,
    Scope,
    Site,
    Transparent,
    Values,
    constant,
    plain,
    sequence,
    union,
)

if TYPE_CHECKING:
    from graphmend.analysis.driver.execution.builtins import Arguments, Keywords


def call(
    m: Machine, function: Values, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    """The value of a call."""
    known = [atom for atom in function if atom is not ANY and not isinstance(atom, Constant)]
    if not known:
        return UNKNOWN
    if len(known) == 1:
        return _call_one(m, known[0], arguments, keywords, node, scope)
    with m.perhaps():
        return union(*(_call_one(m, one, arguments, keywords, node, scope) for one in known))


def _call_one(
    m: Machine, function: Atom, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    if isinstance(function, Callable):
        return m.run(function, arguments, keywords)
    if isinstance(function, ClassObject):
        return construct(m, function, arguments, keywords, node, scope)
    if isinstance(function, Object):
        return _call_object(m, function, arguments, keywords, node, scope)
    if isinstance(function, Compiled):
        return _call_compiled(m, function, arguments, keywords, node, scope)
    if isinstance(function, Partial):
        every = [*function.arguments, *arguments]
        return m.call(function.function, every, {**function.keywords, **keywords}, function.node, scope)
    if isinstance(function, Named):
        return _external(m, function.name, arguments, keywords, node, scope)
    if isinstance(function, Method):
        return _method(m, function, arguments, keywords, node, scope)
    if isinstance(function, Disabled):
        return _call_one(m, function.target, arguments, keywords, node, scope)
    if isinstance(function, Transparent):
        return arguments[0] if arguments else UNKNOWN
    return UNKNOWN


def _call_object(
    m: Machine, owner: Object, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    own = owner.attributes.get("forward") or m.attribute(owner, "forward" if is_module(m, owner) else "__call__", scope)
    for atom in own if owner.info is not None else ():
        if isinstance(atom, Compiled) or (isinstance(atom, Callable) and not is_module(m, owner)):
            return _call_one(m, atom, arguments, keywords, node, scope)
        if isinstance(atom, Callable) and "compile" in atom.info.source.segment(atom.info.source.span(atom.info.node)):
            return m.run(atom, arguments, keywords)
    return UNKNOWN


def _call_compiled(
    m: Machine, function: Compiled, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    """A call of what is compiled tells what its parameters are."""
    target = function.target
    if not isinstance(target, Callable):
        return UNKNOWN
    names = [p.arg for p in target.info.parameters]
    if target.receiver is not None and names:
        names = names[1:]
    for name, values in [*zip(names, arguments, strict=False), *keywords.items()]:
        function.arguments[name] = union(function.arguments.get(name, ()), values)
    return m.run(target, arguments, keywords)


def _external(m: Machine, name: str, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope) -> Values:
    """A call of what has no available source."""
    compiler = facts.COMPILERS.get(name)
    if compiler is not None:
        return _compile(m, name, compiler, arguments, keywords, node, scope)
    first = arguments[0] if arguments else NOTHING
    package, _, last = name.rpartition(".")
    if package == "builtins" and last in BUILTINS:
        return BUILTINS[last](m, arguments, keywords, node, scope)
    if name in facts.DISABLERS:
        return tuple(Disabled(a) for a in first) or (Named(name),)
    if name == "torch.nn.Module.compile" and first:
        return _method(m, Method(first[0], "compile"), arguments[1:], keywords, node, scope)
    if name in facts.TRANSPARENT:
        is_decorator = any(isinstance(a, (Callable, ClassObject, Compiled, Object)) for a in first)
        return first if is_decorator and last != "wraps" else (Transparent(),)
    if name in facts.COPIES:
        return tuple(_copied(m, a) for a in first) or UNKNOWN
    if name in facts.GIVE_BACK:
        return first or UNKNOWN
    if name == "functools.partial" and arguments:
        return (Partial(first, arguments[1:], keywords, node),)
    if name == "functools.reduce":
        return reduced(m, arguments, node, scope)
    if name in ("importlib.import_module", "builtins.__import__"):
        text = constant(first)
        return m.qualified(text) if isinstance(text, str) else UNKNOWN
    if name in ("builtins.exec", "builtins.eval"):
        _forget_constants(m, scope)
        return UNKNOWN
    if name in ("collections.OrderedDict", "collections.defaultdict"):
        return BUILTINS["dict"](m, arguments if last == "OrderedDict" else [], keywords, node, scope)
    if name in ("types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict"):
        made = m.make(None, name)
        made.attributes.update(keywords)
        return (made,)
    if name == "dataclasses.field":
        factory = keywords.get("default_factory")
        return m.call(factory, [], {}, node, scope) if factory is not None else keywords.get("default", UNKNOWN)
    if name == "dataclasses.replace" and first:
        return tuple(_replaced(a, keywords) for a in first)
    if name in facts.STARTERS:
        spread = keywords.get("args") or (arguments[1] if len(arguments) > 1 else UNKNOWN)
        m.call(first, [*(UNKNOWN for _ in range(facts.STARTERS[name])), *_items(spread)], {}, node, scope)
        return UNKNOWN
    if name in facts.STARTING_CLASSES:
        m.call(keywords.get("target", NOTHING), _items(keywords.get("args", UNKNOWN)), {}, node, scope)
        return UNKNOWN
    if name == "torch.func.functional_call":
        return UNKNOWN
    if last[:1].isupper() or name.startswith("torch.nn.modules."):
        made = m.make(None, name)
        initialise(m, made, name, arguments, keywords, node, scope)
        return (made,)
    return _unknown(m, name, arguments, keywords)


def _unknown(m: Machine, name: str, arguments: Arguments, keywords: Keywords) -> Values:
    """The result of an external function: of a module, most likely what stands for it."""
    given = [a for values in (*arguments[:1], *keywords.values()) for a in values]
    held = [a for a in given if is_module(m, a)]
    if not held or name.startswith(("torch.", "builtins.", "numpy.")):
        return UNKNOWN
    made = m.make(None, name)
    made.rest = tuple(held)
    return (made,)


def _items(values: Values) -> list[Values]:
    if len(values) == 1 and isinstance(values[0], Object) and values[0].items is not None:
        return list(values[0].items)
    return []


def _copied(m: Machine, atom: Atom) -> Atom:
    if isinstance(atom, Object):
        copy = atom.copied()
        m.objects.append(copy)
        return copy
    return _copied(m, atom.target) if isinstance(atom, Compiled) else atom


def _replaced(atom: Atom, keywords: Keywords) -> Atom:
    if isinstance(atom, Object):
        atom = atom.copied()
        atom.attributes.update(keywords)
    return atom


def _forget_constants(m: Machine, scope: Scope) -> None:
    """Executed text may give any global another value."""
    variables = m.top_level(scope.module).variables
    for name, values in variables.items():
        if any(isinstance(a, Constant) for a in values):
            variables[name] = UNKNOWN


def _compile(
    m: Machine,
    name: str,
    compiler: facts.Compiler,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.expr,
    scope: Scope,
) -> Values:
    """A call of a compiling function."""
    given = arguments[0] if arguments and compiler.takes_target else None
    for parameter in compiler.target:
        given = given if given is not None else keywords.get(parameter)
    if given is None or constant(given) is None:
        later = {k: v for k, v in keywords.items() if k not in compiler.target}
        how = {**later, **{word: later[word] for word in compiler.full if word in later}}
        if compiler.full and compiler.full[0] in how:
            how["fullgraph"] = how[compiler.full[0]]
        return (Partial((Named("torch.compile"),), [], {k: v for k, v in how.items() if k in _KEPT}, node),)
    if compiler.only_if is not None and constant(keywords.get(compiler.only_if, UNKNOWN)) is not True:
        return UNKNOWN
    if constant(keywords.get(facts.DISABLES, UNKNOWN)) is True:
        return given
    full = compiler.full == ("",) or any(constant(keywords.get(word, UNKNOWN)) is True for word in compiler.full)
    options, late = _options(compiler, keywords), name in facts.LATE
    site = Site(scope.module, scope.function, node, full, options=options, given=keywords, is_late=late)
    if compiler.parts:
        for whole in given:
            parts = [a for a in descendants(m, whole)[1:] if isinstance(a, Object) and a.info is not None]
            blocks = [a for a in descendants(m, whole) if isinstance(a, Object) and a.name == "torch.nn.ModuleList"]
            inside = [a for block in blocks for values in children(m, block).values() for a in values]
            m.compiles(tuple(inside or parts), site)
        return given
    made = m.compiles(given, site)
    return tuple(made) or UNKNOWN if compiler.gives_back else UNKNOWN


_KEPT = frozenset({"fullgraph", "dynamic", "backend", "mode", "options", facts.DISABLES})


def _options(compiler: facts.Compiler, keywords: Keywords) -> frozenset[str]:
    dynamic = constant(keywords.get("dynamic", UNKNOWN)) is True
    return frozenset({"dynamic"} if dynamic else ()) | ({"export"} if compiler.exports else set())


def _method(
    m: Machine, method: Method, arguments: Arguments, keywords: Keywords, node: ast.expr, scope: Scope
) -> Values:
    """A call of a method that no class of the program defines."""
    owner, name = plain(method.receiver), method.name
    if isinstance(owner, Constant):
        return text_method(owner, name, arguments)
    if isinstance(owner, ClassObject):
        if name.startswith(("from_", "load_from_", "load", "create")):
            return construct(m, owner, [], {}, node, scope)
        return UNKNOWN
    if not isinstance(owner, Object):
        return UNKNOWN
    if name == "__init__":
        base = method.after or (external_base(m, owner.info) if owner.info is not None else owner.name) or ""
        initialise(m, owner, base, arguments, keywords, node, scope)
        return NONE
    if owner.on and name in facts.PREPARES:
        compile_given(m, [*arguments, *keywords.values()], keywords, node, scope, f"{name}(...)")
    if name in facts.PREPARES and not is_module(m, owner):
        return arguments[0] if len(arguments) == 1 else (sequence(list(arguments), name="builtins.tuple"),)
    made = container_method(m, owner, name, arguments, keywords, scope)
    if made is not None:
        return made
    if is_module(m, owner):
        return _module_method(m, owner, method.receiver, name, arguments, keywords, node, scope)
    if name == "register_modules":
        owner.attributes.update(keywords)
    modules = [a for values in arguments[:1] for a in values if is_module(m, a)]
    return tuple(modules) or UNKNOWN


def _module_method(
    m: Machine,
    owner: Object,
    receiver: Atom,
    name: str,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.expr,
    scope: Scope,
) -> Values:
    site = Site(
        scope.module,
        scope.function,
        node,
        constant(keywords.get("fullgraph", UNKNOWN)) is True,
        given=keywords,
    )
    if name in facts.COMPILES_ITSELF:
        if constant(keywords.get(facts.DISABLES, UNKNOWN)) is not True:
            m.compiles((owner,), site)
        return NONE
    if name in facts.COMPILES_BLOCKS:
        listed = m.attribute(owner, facts.COMPILES_BLOCKS[name], scope)
        names = {constant(v) for a in listed if isinstance(a, Object) for v in (*(a.items or ()), a.rest)}
        m.compiles(
            tuple(a for a in descendants(m, owner) if isinstance(a, Object) and a.info and a.info.name in names), site
        )
        return NONE
    if name in facts.HOOKS:
        owner.hooks = union(owner.hooks, arguments[0] if arguments else ())
        return UNKNOWN
    if name == "apply" and arguments:
        for one in descendants(m, owner):
            m.call(arguments[0], [(one,)], {}, node, scope)
    if name in facts.CHAINED:
        return (receiver,)
    return module_method(m, owner, name, arguments, scope) or UNKNOWN
