"""Dynamo's own source in, its rules about which callables it traces out.

Half of the generator. Everything is read from syntax: the module-level tables of `trace_rules.py` and the
`@substitute_in_graph(...)` decorators of the polyfills.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend.analysis.torch_facts._stubs import last_name

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


def polyfilled(modules: Iterable[ast.Module]) -> list[str]:
    """The C functions that Dynamo replaces by Python of its own: the targets of `@substitute_in_graph(...)`."""
    found = set()
    for module in modules:
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and last_name(node.func) == "substitute_in_graph" and node.args:
                found.add(ast.unparse(node.args[0]))
    return sorted(n for n in found if "." in n and n.replace(".", "").replace("_", "").isalnum())
