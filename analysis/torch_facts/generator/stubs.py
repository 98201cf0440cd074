"""Python source of torch (stubs and modules) in, overloads out, in the notation of `overloads.py`.

Half of the generator: it knows Python's syntax and torch's type names, and nothing about where the files lie.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

#: annotations by their last name; what is not here and not a tensor is "?"
_SIMPLE = {
    "Tensor": "T",
    "Self": "T",
    "S": "T",
    "_int": "int",
    "int": "int",
    "SymInt": "int",
    "_float": "float",
    "float": "float",
    "_bool": "bool",
    "bool": "bool",
    "_str": "str",
    "str": "str",
    "Number": "number",
    "_complex": "number",
    "complex": "number",
    "_dtype": "dtype",
    "dtype": "dtype",
    "_device": "device",
    "device": "device",
    "Device": "device",
    "_size": "size",
    "Size": "size",
    "_layout": "layout",
    "layout": "layout",
    "ndarray": "ndarray",
    "None": "none",
}
_SEQUENCES = {"tuple", "Tuple", "list", "List", "Sequence", "Iterable"}


def last_name(node: ast.expr) -> str:
    """`Tensor` of `torch.Tensor`; the empty string of anything that is no dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return ""


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    """`A | B`, `Union[A, B]` and `Optional[A]`, taken apart."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            yield node
            return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    elif isinstance(node, ast.Subscript) and last_name(node.value) in ("Union", "Optional"):
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            yield from _alternatives(part)
        if last_name(node.value) == "Optional":
            yield ast.Constant(None)
    else:
        yield node


def result(annotation: ast.expr | None, structs: Mapping[str, str]) -> str:
    """The result of a function so annotated; `structs` has the results by name of `torch.return_types`."""
    if annotation is None:
        return "?"
    parts = dict.fromkeys(_one(part, structs) for part in _alternatives(annotation))
    return "?" if "?" in parts else "/".join(parts)


def _one(node: ast.expr, structs: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return "none" if node.value is None else "?"
    if isinstance(node, ast.Subscript):
        name = last_name(node.value)
        if name.endswith(("TypeIs", "TypeGuard")):
            return "bool"
        if name not in _SEQUENCES:
            return "?"
        elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name not in ("tuple", "Tuple") or (len(elements) == 2 and isinstance(elements[1], ast.Constant)):
            element = result(elements[0], structs)
            return "L" if element == "T" else "size" if element == "int" and name in ("tuple", "Tuple") else "list"
        return "(" + " ".join(result(e, structs) for e in elements) + ")"
    name = last_name(node)
    if isinstance(node, ast.Attribute) and last_name(node.value) == "return_types":
        return structs.get(name, "?")
    return "list" if name == "list" else _SIMPLE.get(name, "?")


def named_tuples(stub: ast.Module) -> dict[str, str]:
    """`torch/return_types.pyi`: the result that each named tuple stands for, fields named."""
    found = {}
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and node.bases:
            fields = [
                f"{m.name}={result(m.returns, {})}"
                for m in node.body
                if isinstance(m, ast.FunctionDef) and any(last_name(d) == "property" for d in m.decorator_list)
            ]
            if fields:
                found[node.name] = "(" + " ".join(fields) + ")"
    return found


def _marker(annotation: ast.expr | None) -> str:
    """How a parameter takes tensors: `:` only tensors, `~` tensors or other things, nothing: no tensors."""
    if annotation is None:
        return "~"
    names = {last_name(p) or (None if _is_none(p) else "?") for p in _alternatives(annotation)} - {None}
    if names <= {"Tensor", "Parameter"}:
        return ":"
    return "~" if names & {"Tensor", "Any", "Number", "object", "T", "_T", "_complex"} else ""


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return f"{argument.arg}{_marker(argument.annotation)}{'' if default is None else '='}"


def _is_absent(annotation: ast.expr | None) -> bool:
    """`return_indices: Literal[False] = False` and `dim: None = None` stand for the argument's absence."""
    return annotation is not None and (_is_none(annotation) or ast.unparse(annotation).endswith("Literal[False]"))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def overload(function: ast.FunctionDef, structs: Mapping[str, str], *, bound: bool) -> str:
    """One definition as an overload; `bound` leaves the receiver out.

    What follows a parameter that stands for an argument's absence can only be given by keyword.
    """
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    parameters = list(zip(positional, defaults, strict=True))[1 if bound else 0 :]
    absent = next((i for i, (a, _) in enumerate(parameters) if _is_absent(a.annotation)), len(parameters))
    texts = [_parameter(a, default) for a, default in parameters[:absent]]
    keyword_only = [*parameters[absent:], *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.vararg:
        texts.append(f"*{args.vararg.arg}{_marker(args.vararg.annotation)}")
    elif any(not _is_absent(a.annotation) for a, _ in keyword_only):
        texts.append("*")
    texts += [_parameter(a, default) for a, default in keyword_only if not _is_absent(a.annotation)]
    if args.kwarg:
        texts.append(f"**{args.kwarg.arg}")
    returns = result(function.returns, structs)
    if bound and returns == "T" and function.name.endswith("_") and not function.name.endswith("__"):
        returns = "self"
    return ",".join(texts) + ">" + returns


def functions(body: Iterable[ast.stmt], structs: Mapping[str, str], *, bound: bool = False) -> dict[str, list[str]]:
    """The overloads of all functions (or methods) defined in a body, also under `if`.

    Overloads of a module replace the definition that carries them out.
    """
    found: dict[str, list[str]] = {}
    marked: set[str] = set()
    for node in _definitions(body):
        decorators = {last_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
        if "property" in decorators or "setter" in decorators:
            continue
        if "overload" in decorators or "_overload" in decorators:
            marked.add(node.name)
            if any(last_name(a.annotation) == "object" for a in node.args.args if a.annotation):
                continue  # `__eq__(other: object) -> bool`: there for the base class's sake only
        elif node.name in marked:
            continue
        static = "staticmethod" in decorators
        text = overload(node, structs, bound=bound and not static)
        if node.name in marked:
            if text not in found.setdefault(node.name, []):
                found[node.name].append(text)
        else:
            found[node.name] = [text]
    return found


def _definitions(body: Iterable[ast.stmt]) -> Iterator[ast.FunctionDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.If):
            yield from _definitions(node.body)
            yield from _definitions(node.orelse)


def attributes(body: Iterable[ast.stmt], structs: Mapping[str, str]) -> dict[str, str]:
    """Annotated attributes and properties of a class."""
    found = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = result(node.annotation, structs)
        elif isinstance(node, ast.FunctionDef) and any(last_name(d) == "property" for d in node.decorator_list):
            found[node.name] = result(node.returns, structs)
    return found


def class_body(module: ast.Module, name: str) -> list[ast.stmt]:
    """The body of a class at a module's top level."""
    return next((n.body for n in module.body if isinstance(n, ast.ClassDef) and n.name == name), [])


def forwards(modules: Iterable[ast.Module], structs: Mapping[str, str]) -> dict[str, list[str]]:
    """By class name: what calling a module of each class gives, inherited ones included."""
    classes = {n.name: n for module in modules for n in module.body if isinstance(n, ast.ClassDef)}
    own = {name: functions(node.body, structs, bound=True).get("forward") for name, node in classes.items()}

    def find(name: str) -> list[str] | None:
        if name not in classes:
            return None
        return own[name] or next(filter(None, (find(last_name(base)) for base in classes[name].bases)), None)

    return {name: texts for name in classes if not name.startswith("_") and (texts := find(name))}


def documented_aliases(module: ast.Module) -> dict[str, str]:
    """`conv2d = _add_docstr(torch.conv2d, ...)`: name to the dotted name of what it is."""
    found = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and last_name(value.func) == "_add_docstr" and value.args:
                value = value.args[0]
            if isinstance(value, ast.Attribute):
                found[node.targets[0].id] = ast.unparse(value)
    return found


def dispatched(module: ast.Module, defined: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """`max_pool2d = boolean_dispatch(...)`: the function that is meant depends on one flag being given.

    The overload that the flag selects has it as a required parameter, the other one does not have it at all.
    """
    known = dict(defined)
    found: dict[str, list[str]] = {}
    for node in module.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        call = node.value
        if isinstance(call, ast.Call) and last_name(call.func) == "boolean_dispatch":
            options = {k.arg: k.value for k in call.keywords if k.arg}
            flag = ast.literal_eval(options["arg_name"])
            with_flag = known.get(last_name(options["if_true"]), [])
            without = known.get(last_name(options["if_false"]), [])
            texts = [_require(t, flag) for t in with_flag] + [_without(t, flag) for t in without]
            name = node.targets[0].id
            known[name] = found[name] = list(dict.fromkeys(texts))
    return found


def _require(text: str, flag: str) -> str:
    parameters, _, returns = text.rpartition(">")
    names = parameters.split(",")
    return ",".join(p.rstrip("=") if p.rstrip("=:~") == flag else p for p in names) + ">" + returns


def _without(text: str, flag: str) -> str:
    parameters, _, returns = text.rpartition(">")
    return ",".join(p for p in parameters.split(",") if p.rstrip("=:~") != flag) + ">" + returns
