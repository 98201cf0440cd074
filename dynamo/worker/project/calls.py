"""Attributes, calls and loops in a project's code: its own functions and classes are followed, `externals` does the
rest. What is made of the watched class, and how it is called, is kept.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Callable
from typing import Any

from . import batches, data_files, externals, outputs
from .expressions import MOST_ITEMS, Expressions
from .values import (
    UNKNOWN,
    Above,
    Batches,
    Call,
    Class,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Module,
    Opened,
    Scope,
    is_false,
    is_named_tuple,
    known,
    names_of,
)

DEEPEST = 12


class Calls(Expressions):
    """`watched` says whether a class or function is the one that is looked for."""

    def __init__(self, resize: Callable[[int], int], watched: Callable[[Class | Function], bool], root: str) -> None:
        super().__init__(resize)
        self.watched = watched
        self.root = root
        self.made: list[Instance] = []
        self.called: list[Call] = []
        self.depth = 0
        self.sampling = 0
        """How many samples of data sets are on the way."""
        self.entered: set[int] = set()
        """The definitions of functions that were followed."""

    def follow(self, function: Function, scope: Scope) -> Any:
        """Runs a function's body in a scope that holds its arguments."""
        raise NotImplementedError

    # attributes

    def attribute(self, value: Any, name: str) -> Any:
        if isinstance(value, Instance):
            return self._of_instance(value, name)
        if isinstance(value, (Class, Function)) and name in ("__name__", "__qualname__"):
            return getattr(value.node, "name", UNKNOWN)
        if isinstance(value, Class):
            found = value.get(name)
            return self._as_method(found, value, value) if isinstance(found, Function) else found
        if isinstance(value, Module):
            return value if name == "__dict__" else value.scope.get(name)
        if isinstance(value, Above):
            found = value.home.inherited(name)
            return found.bound(value.owner) if isinstance(found, Function) else External(name, None)
        if isinstance(value, External):
            return externals.member(value, name)
        if isinstance(value, (Layer, Batches, Function)) or value is UNKNOWN:
            return External(name, lambda *args, **kwargs: value) if self._keeps(value, name) else UNKNOWN
        if isinstance(value, Opened):
            opens = name in ("read", "__enter__", "open", "read_text")
            return External("file.open", lambda *args, **kwargs: value) if opens else UNKNOWN
        if isinstance(value, Mapping) and name not in value and isinstance(found := value.home.get(name), Function):
            return self._as_method(found, value, value.home)
        if isinstance(value, dict) and name == "merge_from_file":
            return External(name, lambda path="": data_files.merge(value, self.data(externals.opened(path))))
        return externals.plain_member(value, name, self.resize)

    @staticmethod
    def _keeps(value: Any, name: str) -> bool:
        """Whether a method gives back the module itself."""
        return isinstance(value, Layer) and name in _SAME_MODULE

    def _of_instance(self, value: Instance, name: str) -> Any:
        if name in value.fields or name == "__dict__":
            return value.fields.get(name, value.fields)
        found = value.cls.get(name)
        if isinstance(found, Function):
            return self._as_method(found, value, value.cls)
        if found is UNKNOWN and self.is_module(value):
            same = name in _SAME_MODULE
            return External(name, (lambda *args, **kwargs: value) if same else None)
        return found

    def _as_method(self, found: Function, owner: Any, cls: Class) -> Any:
        if found.has_decorator("staticmethod"):
            return found
        if found.has_decorator("classmethod"):
            return found.bound(cls)
        if isinstance(owner, Class):
            return found
        return self.invoke(found.bound(owner), [], {}) if found.has_decorator("property") else found.bound(owner)

    @staticmethod
    def is_module(value: Instance) -> bool:
        """Whether an object is an `nn.Module`, or of a class whose base is not installed."""
        return any(each is UNKNOWN or externals.is_module_class(each) for each in value.cls.ancestors())

    # calls

    def call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.value(node.func, scope)
        args = list(self._each(node.args, scope))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif isinstance(value, (dict, Instance)) or hasattr(value, "__dict__"):
                mapping = value if isinstance(value, dict) else getattr(value, "fields", {})
                kwargs.update({name: item for name, item in mapping.items() if isinstance(name, str)})
        if isinstance(function, External) and function.name == "super":
            return self._above(scope)
        if function is UNKNOWN and isinstance(node.func, (ast.Name, ast.Attribute)):
            return self._looked_up(ast.unparse(node.func).rpartition(".")[2], args, kwargs, scope)
        if self._keeps_call(function) and len(args) == len(node.args):
            args = [self._with_outputs(n, value, scope) for n, value in zip(node.args, args)]  # noqa: B905
            named = {k.arg: k.value for k in node.keywords if k.arg is not None}
            kwargs = {n: self._with_outputs(named[n], v, scope) if n in named else v for n, v in kwargs.items()}
        return self.invoke(function, args, kwargs)

    def _keeps_call(self, function: Any) -> bool:
        if isinstance(function, Function):
            owner = function.owner
            return self.watched(owner.cls) if isinstance(owner, Instance) else self.watched(function)
        return isinstance(function, Instance) and self.watched(function.cls)

    def _with_outputs(self, node: ast.expr, value: Any, scope: Scope) -> Any:
        return value if known(value) else outputs.given(node, scope, self.value, self.is_module)

    def _looked_up(self, name: str, args: list[Any], kwargs: dict[str, Any], scope: Scope) -> Any:
        """`getattr(models, "small")`, `vars(models)`, `globals()`: a table of names stands for its module."""
        if name == "getattr" and len(args) > 1 and isinstance(args[1], str):
            found = self.attribute(args[0], args[1])
            return args[2] if found is UNKNOWN and len(args) > 2 else found
        if name == "vars" and len(args) == 1:
            return self.attribute(args[0], "__dict__") if isinstance(args[0], Instance) else names_of(args[0])
        if name == "globals" and not args:
            return Module(scope.of_module)
        if name in ("eval", "import_module") and args and isinstance(args[0], str):
            return self.imported(args[0]) if name != "eval" else self.value(ast.parse(args[0], mode="eval").body, scope)
        return self.invoke(UNKNOWN, args, kwargs)

    def imported(self, name: str) -> Any:
        """The module of a dotted name, as the code that is read would import it."""
        raise NotImplementedError

    def _instantiated(self, settings: dict[Any, Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What settings describe that name what makes it: `{"_target_": "models.Net", "dim": 64}`."""
        module, _, name = settings["_target_"].rpartition(".")
        given = {n: v for n, v in {**settings, **kwargs}.items() if isinstance(n, str) and not n.startswith("_")}
        given = {n: self._instantiated(v, [], {}) if _is_described(v) else v for n, v in given.items()}
        return self.invoke(self.attribute(self.imported(module), name), args, given)

    def invoke(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, Function):
            return self._followed(function, args, kwargs)
        if isinstance(function, Class):
            return self.make(function, args, kwargs)
        if isinstance(function, Instance):
            return self._called(function, args, kwargs)
        if is_named_tuple(function):
            return function(*args, **kwargs)
        if isinstance(function, External) and function.name.startswith("torch.utils.data."):
            return batches.loader(function.name.rpartition(".")[2], args, kwargs)
        handed = [a for a in args if isinstance(a, Instance) or (isinstance(a, Function) and len(args) == 1)]
        if isinstance(function, External) and externals.is_module_class(function) and not _wraps(function):
            return externals.call(function, args, kwargs)
        if function is UNKNOWN or (handed and isinstance(function, External) and "." in function.name):
            return self._unknown(args, kwargs, bool(handed))
        if isinstance(function, External) and function.name in ("iter", "next"):
            return next(iter(self.items(args[0])), UNKNOWN) if function.name == "next" else args[0]
        if not isinstance(function, External):
            return UNKNOWN
        if function.name in ("map", "filter") and args and isinstance(args[0], Function):
            return self._mapped(args[0], [self.items(each) for each in args[1:]], keep=function.name == "filter")
        if function.name in ("sorted", "min", "max") and isinstance(kwargs.get("key"), Function):
            return self._ordered(function, args, kwargs)
        if self.sampling and function.name in ("int", "float") and args == [UNKNOWN]:
            return function.value(1)  # some number of the data, such as a label
        made = externals.call(function, args, kwargs)
        if isinstance(made, Opened) and not function.name.endswith(("open", "join")):
            return self.data(made)
        return made

    def _ordered(self, function: External, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What is ordered by a function of the project."""
        items = self.items(args[0])
        keys = {id(each): self.invoke(kwargs["key"], [each], {}) for each in items}
        if not known(list(keys.values())):
            return UNKNOWN
        return function.value(items, **{**kwargs, "key": lambda each: keys[id(each)]})

    def _mapped(self, function: Function, items: list[list[Any]], *, keep: bool) -> list[Any]:
        """What `map` gives, or what `filter` keeps."""
        rows = [list(row) for row in zip(*items)]  # noqa: B905
        found = [self.invoke(function, row, {}) for row in rows]
        return [row[0] for row, kept in zip(rows, found) if not is_false(kept)] if keep else found  # noqa: B905

    def _unknown(self, args: list[Any], kwargs: dict[str, Any], handed: bool) -> Any:
        """What nobody here knows: a wrapper of a module or function, or a configuration in another coat."""
        if handed:
            return args[0] if len(args) == 1 else tuple(args)
        if args and _is_described(args[0]):
            return self._instantiated(args[0], args[1:], kwargs)
        if len(args) == 1 and isinstance(args[0], dict):
            return args[0]
        if len(args) == 1 and isinstance(args[0], str):
            return self.data(Opened(args[0]))
        return UNKNOWN

    def data(self, file: Opened) -> Any:
        """What a file of settings holds. Paths are those of the folder of the code, or of one above it. Where only the
        command line says which file it is, any of the project's will do.
        """
        folder = self.folder
        for _ in range(4 if file.path else 0):
            path = os.path.join(folder, file.path)
            if os.path.isfile(path):
                return data_files.read(path, self.resize)
            folder = os.path.dirname(folder)
        found = data_files.of_name(self.root, file.path, self.resize) if file.somewhere else UNKNOWN
        if found is UNKNOWN and (file.somewhere or not file.path):
            return data_files.likeliest(self.root, file.endings, self.resize)
        return found

    folder = ""
    """The folder of the file that is read."""

    def _followed(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self.depth >= DEEPEST:
            return UNKNOWN
        self.entered.add(id(function.node))
        if function.owner is None and self.watched(function):
            self.called.append(Call(function, "", args, kwargs))
        owner = function.owner
        if isinstance(owner, Instance) and self.watched(owner.cls) and not function.node.name.startswith("_"):
            method = function.node.name if function.node.name != "forward" else ""
            self.called.append(Call(owner, method, args, kwargs))
        if self._runs(function):  # with its own sizes
            resize, self.resize = self.resize, lambda number: number
            try:
                return self._entered(function, args, kwargs)
            finally:
                self.resize = resize
        return self._entered(function, args, kwargs)

    @staticmethod
    def _runs(function: Function) -> bool:
        """Whether a function is run for real later: its literals cannot be made smaller."""
        return function.home is not None and any(map(externals.is_module_class, function.home.ancestors()))

    def _entered(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        scope = Scope(function.scope.path, function.scope)
        if function.owner is not None:
            args = [function.owner, *args]
            scope.names["__home__"] = Above(function.owner, function.home) if function.home is not None else UNKNOWN
        self._arguments(function, args, kwargs, scope)
        self.depth += 1
        try:
            return self.follow(function, scope)
        finally:
            self.depth -= 1

    def _arguments(self, function: Function, args: list[Any], kwargs: dict[str, Any], scope: Scope) -> None:
        given = function.node.args
        named = [a.arg for a in (*given.posonlyargs, *given.args)]
        values = dict(zip(named, args))  # noqa: B905
        for argument, default in zip(reversed(named), reversed(given.defaults)):  # noqa: B905
            if argument not in values and argument not in kwargs:
                values[argument] = self.value(default, function.scope)
        for keyword, optional in zip(given.kwonlyargs, given.kw_defaults):  # noqa: B905
            named.append(keyword.arg)
            if optional is not None and keyword.arg not in kwargs:
                values[keyword.arg] = self.value(optional, function.scope)
        values.update({name: value for name, value in kwargs.items() if name in named})
        values = {n: outputs.filled(v, lambda _: UNKNOWN) if outputs.holds(v) else v for n, v in values.items()}
        scope.names.update({name: values.get(name, UNKNOWN) for name in named})
        if given.vararg is not None:
            scope.names[given.vararg.arg] = tuple(args[len(given.posonlyargs) + len(given.args) :])
        if given.kwarg is not None:
            scope.names[given.kwarg.arg] = {name: value for name, value in kwargs.items() if name not in named}

    def make(self, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if cls.is_mapping and not self.watched(cls):  # its attributes are its keys, as in most that are written
            return Mapping(cls, {**(args[0] if args and isinstance(args[0], dict) else {}), **kwargs})
        instance = Instance(cls, args, kwargs)
        if self.watched(cls):
            self.made.append(instance)
        constructor = cls.get("__init__")
        if isinstance(constructor, Function):
            self._followed(constructor.bound(instance), args, kwargs)
        elif cls.is_dataclass:
            self._fill(instance, args, kwargs)
        else:
            instance.fields.update(kwargs)
        instance.later = {}
        return instance

    def _fill(self, instance: Instance, args: list[Any], kwargs: dict[str, Any]) -> None:
        for position, field in enumerate(instance.cls.fields()):
            name = field.target.id  # type: ignore[union-attr]
            if position < len(args) or name in kwargs:
                instance.fields[name] = args[position] if position < len(args) else kwargs[name]
            else:
                instance.fields[name] = self._default(field.value, instance.cls.scope)
        made = instance.cls.get("__post_init__")
        if isinstance(made, Function):
            self._followed(made.bound(instance), [], {})

    def _default(self, node: ast.expr | None, scope: Scope) -> Any:
        """`= 3`, `= field(default=3)`, `= field(default_factory=list)`."""
        if not isinstance(node, ast.Call):
            return UNKNOWN if node is None else self.value(node, scope)
        parts = {k.arg: k.value for k in node.keywords}
        if "default_factory" in parts:
            return self.invoke(self.value(parts["default_factory"], scope), [], {})
        return self.value(parts.get("default", node), scope)

    def _called(self, instance: Instance, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self.watched(instance.cls):
            self.called.append(Call(instance, "", args, kwargs))
        called = instance.cls.get("__call__")
        return self._followed(called.bound(instance), args, kwargs) if isinstance(called, Function) else UNKNOWN

    def _above(self, scope: Scope) -> Any:
        return scope.get("__home__")

    # loops

    def items(self, value: Any) -> list[Any]:
        if isinstance(value, Batches):
            return [self._batch(value)]
        if isinstance(value, Instance):
            looped = value.cls.get("__iter__")
            if isinstance(looped, Function):
                return self.items(self._followed(looped.bound(value), [], {}))
            return [self.item(value, 0)]
        if value is UNKNOWN or isinstance(value, (External, Class, Function, Layer, Module, Opened)):
            return [UNKNOWN]
        try:
            return list(itertools.islice(value, MOST_ITEMS))
        except Exception:  # not to be looped over: it is something else in the program
            return [UNKNOWN]

    def item(self, value: Instance, index: Any) -> Any:
        found = value.cls.get("__getitem__")
        self.sampling += 1
        try:
            return self._followed(found.bound(value), [index], {}) if isinstance(found, Function) else UNKNOWN
        finally:
            self.sampling -= 1

    def _batch(self, loader: Batches) -> Any:
        samples = loader.samples
        if isinstance(samples, Instance):
            each = [self.item(samples, index) for index in range(batches.SAMPLES)]
        elif hasattr(samples, "__getitem__"):
            each = [samples[index] for index in range(min(batches.SAMPLES, len(samples)))]
        elif not (each := batches.told(loader.join, self.resize)):
            return UNKNOWN
        return batches.joined(each) if loader.join is None else self.invoke(loader.join, [each], {})


_SAME_MODULE = frozenset(
    "to cuda cpu eval train float double half bfloat16 requires_grad_ apply share_memory type xpu to_empty".split()
)


def _is_described(value: Any) -> bool:
    """Whether settings say what is made of them."""
    return isinstance(value, dict) and isinstance(value.get("_target_"), str) and not value.get("_partial_")


def _wraps(function: External) -> bool:
    """Whether a module of torch only stands around another one."""
    return function.name.rpartition(".")[2] in ("DataParallel", "DistributedDataParallel")
