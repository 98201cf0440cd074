"""Dynamo's own source in, its rules about which callables it traces out.

Half of the generator. Everything is read from syntax: the module-level tables of `trace_rules.py` and the
`@substitute_in_graph(...)` decorators of the polyfills.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend.analysis.torch_facts.generator.stubs import last_name

#: rules under which Dynamo ends the graph at a call
_REFUSING = ("SkipFunctionVariable", "SparseTensorCreationSkipVariable")


class Rules:
    """The tables of `torch/_dynamo/trace_rules.py`."""

    def __init__(self, module: ast.Module) -> None:
        self.lists: dict[str, list[str]] = {}
        self.by_class: dict[str, list[str]] = {}
        for node in ast.walk(module):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and node.value is not None:
                    self._assigned(target.id, node.value)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("add", "update")
            ):
                self._added(last_name(node.func.value), node.args)

    def _assigned(self, name: str, value: ast.expr) -> None:
        if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            self.lists.setdefault(name, []).extend(_names(value.elts))
        elif (
            isinstance(value, ast.Call) and last_name(value.func) == "fromkeys" and isinstance(value.args[0], ast.List)
        ):
            self.lists.setdefault(name, []).extend(_names(value.args[0].elts))
        elif isinstance(value, ast.Dict) and name == "manual_torch_name_rule_map":
            for key, rule in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    self.by_class.setdefault(last_name(rule), []).append(key.value)

    def _added(self, name: str, args: list[ast.expr]) -> None:
        if name == "MOD_INLINELIST":
            self.lists.setdefault(name, []).extend(_names(args))
        elif name == "BUILTIN_INLINE_WHEN_CALLED":
            modules = [
                last_name(call.args[0])
                for arg in args
                for call in ast.walk(arg)
                if isinstance(call, ast.Call) and last_name(call.func) == "_module_dir"
            ]
            self.lists.setdefault(name, []).extend(modules)

    def table(self, name: str) -> list[str]:
        return sorted(set(self.lists.get(name, ())))

    @property
    def refused(self) -> list[str]:
        """Callables that a rule of their own refuses; `Class#method` becomes `Class.method`."""
        names = {n for rule in _REFUSING for n in self.by_class.get(rule, ()) if ".py#" not in n}
        names |= {f"torch.Generator#{m}" for m in self.lists.get("_GENERATOR_METHODS_THAT_GRAPH_BREAK", ())}
        return sorted(n.replace("#", ".") for n in names)

    def skips(self, path: str) -> bool:
        """Whether functions defined in a file of torch are skipped, by the precedence that `check_file` states."""
        file = path.removesuffix(".py").removesuffix("/__init__") + ("/__init__" if path == "torch/__init__.py" else "")

        def listed(name: str) -> bool:
            return any(file.startswith(module.replace(".", "/")) for module in self.lists.get(name, ()))

        return listed("MOD_SKIPLIST") and not listed("MOD_INLINELIST") and not listed("LEGACY_MOD_INLINELIST")

    @property
    def traced(self) -> set[str]:
        """Callables that a rule of their own lets into the graph, or folds, or inlines."""
        manual = {n for rule, names in self.by_class.items() if rule not in _REFUSING for n in names if ".py#" not in n}
        lists = ("torch_c_binding_in_graph_functions", "torch_non_c_binding_in_graph_functions")
        return {n.replace("#", ".") for n in manual.union(*(self.lists.get(name, ()) for name in lists))}


def _names(elements: Iterable[ast.expr]) -> list[str]:
    found = []
    for e in elements:
        if isinstance(e, ast.Constant) and isinstance(e.value, str):
            found.append(e.value)
        elif isinstance(e, (ast.Name, ast.Attribute)):
            found.append(ast.unparse(e))
    return found


def handled_functions(module: ast.Module) -> set[str]:
    """What `variables/torch.py` computes while tracing: its lists of functions to fold, and those with a handler."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and last_name(node.func) == "register":
            found.update(_names(node.args))
        elif isinstance(node, ast.Assign) and last_name(node.targets[0]).startswith("constant_fold_functions"):
            lists = [n for n in ast.walk(node.value) if isinstance(n, ast.List)]
            found.update(name for part in lists for name in _names(part.elts))
        elif isinstance(node, ast.FunctionDef) and node.name == "tracing_state_functions":
            found.update(ast.unparse(k) for d in ast.walk(node) if isinstance(d, ast.Dict) for k in d.keys if k)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "constant_fold_functions.extend":
            found.update(name for arg in node.args if isinstance(arg, ast.List) for name in _names(arg.elts))
    return {name for name in found if name.startswith("torch.")}


def public_names(modules: Iterable[ast.Module]) -> list[str]:
    """The public functions and classes that modules define, and the names that they bind or import by name."""
    found: set[str] = set()
    for module in modules:
        for node in module.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
            elif isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name for a in node.names}
    return sorted(n for n in found if not n.startswith(("_", "*")))


def polyfilled(modules: Iterable[ast.Module]) -> list[str]:
    """The C functions that Dynamo replaces by Python of its own: the targets of `@substitute_in_graph(...)`."""
    found = set()
    for module in modules:
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and last_name(node.func) == "substitute_in_graph" and node.args:
                found.add(ast.unparse(node.args[0]))
    return sorted(n for n in found if "." in n and n.replace(".", "").replace("_", "").isalnum())
