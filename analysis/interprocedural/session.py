"""One check: the state that the walks of its functions share.

It enters functions, remembers what they gave for which kinds of arguments, and turns what the rules say into findings.
A function is walked once for each combination of argument values (evidence aside), so a helper that is called with a
tensor here and with a number there is judged for both.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from graphmend.analysis.interpreter.events import Call, Event, Generator, loses_frame, only_some_rounds
from graphmend.analysis.interpreter.interface import Walk
from graphmend.analysis.interpreter.walk.statements import Walker
from graphmend.analysis.interprocedural import shared_results
from graphmend.analysis.interprocedural.decorators import DISABLED, OPAQUE, wrapped
from graphmend.analysis.interprocedural.interface import Recorder
from graphmend.analysis.interprocedural.on_demand import Reading
from graphmend.analysis.interprocedural.recursion import Recursion
from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.interprocedural.verdicts import Verdict
from graphmend.analysis.lattice.dependence import Parameter, declared_sources
from graphmend.analysis.lattice.environment import Environment
from graphmend.analysis.lattice.values import UNKNOWN, Const, Static, Value, as_input
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.program.project import Project
from graphmend.analysis.region.dynamo_config import decorated_mode
from graphmend.analysis.region.mode import Mode
from graphmend.analysis.region.roots import Region, Root
from graphmend.analysis.resolution.annotations import annotated
from graphmend.analysis.resolution.classes import is_module_class, mro
from graphmend.analysis.resolution.parameters import as_computed, bind, parameters
from graphmend.analysis.resolution.tracing_answers import WHILE_TRACING
from graphmend.analysis.rules import RULES
from graphmend.analysis.rules.dispatch import Judging
from graphmend.analysis.rules.rule import Break, Rule
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.nodes import FunctionNode
from graphmend.analysis.torch_facts import load

#: calls within calls that are followed
_DEEPEST = 14
#: activations of one function at a time before constants among a recursive call's arguments stop to count
_RECURSION = 2
#: combinations of arguments for which a function is walked before constants among them stop to count
_MOST_VARIANTS = 16
#: walks of one inner function in one activation of that around it
_MOST_CLOSURES = 64

_GRADIENTS_OFF = ("torch.no_grad", "torch.inference_mode")


class AnalysisSession:
    """The walks of one check."""

    def __init__(
        self, module: ModuleInfo | None, project: Project, settings: Settings, rules: tuple[Rule, ...] = RULES
    ) -> None:
        self.module = module
        self.project = project
        self.settings = settings
        self.torch = load(settings.torch_version)
        self.notes: list[str] = []
        self.roots: list[tuple[FunctionSummary, Region]] = []
        self.activations: dict[Hashable, FunctionSummary] = {}
        self.region = Region("assumed", None, None)
        self.within_region = False
        self.depth = 0
        self.module_classes: dict[ClassInfo, bool] = {}
        self.outside: dict[ClassInfo, list[str]] = {}
        """Of classes: the bases that are out of reach."""
        self.recording: Recorder | None = None
        self.judging = Judging(rules, settings, self.torch, self._is_module)
        self.results_memoised: set[FunctionInfo] = set()
        """Functions whose results went into attributes and globals, which are evaluated once."""
        self.variants: Counter[FunctionInfo] = Counter()
        self.generalised = 0
        """How often constants did not count because a function had too many variants."""
        self.follows = False
        """Whether edits are followed: then what was walked may have been entered first by what is gone."""
        self.mixed_declarations: set[Parameter] = set()
        """Parameters whose declaration some call of a function rests on, but not the one that it was walked for."""
        self._stack: list[FunctionSummary] = []
        self._recursion = Recursion(self.activations)
        self._active: list[FunctionInfo] = []
        self._apart = False
        self._closures: Counter[FunctionInfo] = Counter()
        """How often the activation that is under way walked functions that close over its names."""
        self._inner: dict[FunctionNode, FunctionInfo] = {}
        self.reading = Reading(self)
        self.known_parameters: dict[tuple[FunctionInfo, str], Value] = {}
        self._decorated: dict[FunctionInfo, Function | None] = {}

    @property
    def mode(self) -> Mode:
        """How what is walked right now is traced."""
        return self.judging.mode

    def _is_module(self, value: Instance) -> bool:
        return is_module_class(self, value.info)

    @contextmanager
    def within(self, mode: Mode) -> Iterator[None]:
        """Walk what follows as it is traced in another mode."""
        outer, self.judging.mode = self.judging.mode, mode
        try:
            yield
        finally:
            self.judging.mode = outer

    @contextmanager
    def outside_region(self) -> Iterator[None]:
        """What follows is not traced."""
        within, self.within_region = self.within_region, False
        try:
            yield
        finally:
            self.within_region = within

    @contextmanager
    def separate_walk(self) -> Iterator[None]:
        """What follows is no part of the walk that is under way."""
        outer = self._stack, self._closures
        self._stack, self._closures = [], Counter()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self._stack, self._closures = outer

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """What follows begins anew, as if nothing had led to it."""
        outer = self.depth, self._stack, self._active, self.variants, self.activations, self._recursion
        self.depth, self._stack, self._active, self.variants, self.activations = 0, [], [], Counter(), {}
        self._recursion = Recursion(self.activations)
        self._apart = True
        try:
            yield
        finally:
            self.depth, self._stack, self._active, self.variants, self.activations, self._recursion = outer
            self._apart = False

    def note_attribute_read(self, info: ClassInfo, name: str) -> None:
        """What is walked or read now hangs on an attribute."""
        (self._stack[-1].reads if self._stack else self.reading.read_set).add((info, name))
        if info.is_inner:  # it goes with the walk that defines it; what it inherits is asked for but once
            self.reading.unscoped_reads.update((cls, name) for cls in mro(info, self)[1:])

    def close(self) -> None:
        """Let go of all walks."""
        self.reading.close()
        for kept in (self.activations, self.roots, self._inner, self.known_parameters, self._decorated, self.variants):
            kept.clear()
        for known in (self.module_classes, self.outside, self.results_memoised, self.mixed_declarations):
            known.clear()

    # -- rules

    def listens(self, callee: str) -> bool:
        """Whether a rule cares for calls of `callee`."""
        return bool(self.judging.rules_for(callee))

    def judge(self, w: Walk, kind: type[Event], node: ast.expr | ast.stmt, details: tuple[Any, ...]) -> None:
        """Ask the rules that subscribe to an event, and keep what they find."""
        if not self.within_region:
            return
        assert w.statement is not None
        event = kind(node, w.statement, w.situation, *details)
        said = self.judging.verdict(event)
        if said is not None:
            rule, breaks = said
            if self.settings.selects(rule.code):
                self._keep(rule, breaks, event, w)
            if breaks.effect != "recompiles":
                w.resume()

    def _keep(self, rule: Rule, breaks: Break, event: Event, w: Walk) -> None:
        node, situation = event.node, event.situation
        callee = event.callee if isinstance(event, Call) else None
        verdict = Verdict(
            rule, breaks, node, w.info, bool(situation.conditional), loses_frame(situation), callee, self.mode.raises
        )
        activation = self._stack[-1]
        if activation.lost_before(verdict):
            return
        if verdict.loses_frame and not only_some_rounds(situation):
            activation.frame_lost_at.setdefault(breaks.origin, node)
        if breaks.effect != "recompiles":
            activation.broke(w.always)
        place = (w.info.module.source.path, node.lineno, node.col_offset, rule.code)
        activation.add(place, verdict)

    # -- roots

    def walk_root(self, root: Root) -> None:
        """Walk a function that tracing starts at."""
        function, region = root.function, root.region
        self.region = region
        self.judging.mode = region.mode
        self.within_region = True
        try:
            self._walk_as_root(function, region, parameters(self, function.info, function.bound, root.given))
            if function.info.decorators:
                wrapper = self.decorated(function.info, function.bound)
                if isinstance(wrapper, Function) and wrapper.info is not function.info:
                    self._walk_as_root(wrapper, region, parameters(self, wrapper.info, function.bound))
        finally:
            self.within_region = False

    def _walk_as_root(self, function: Function, region: Region, env: Environment) -> None:
        activation = FunctionSummary(function.info, env, function.closure, 0, True, region.mode)
        self.roots.append((activation, region))
        self.walk(activation)

    def walk(self, activation: FunctionSummary) -> None:
        """Walk an activation (again), from nothing."""
        activation.clear()
        self._recursion.forget()
        self.judging.mode = activation.mode
        self.within_region = activation.within_region
        self.depth = 0
        self._active.clear()
        self._stack = [activation]
        self._closures.clear()
        try:
            env = dict(activation.env)
            activation.value = self.walk_body(activation.info, env, activation.closure, activation.silent, None)
        except RecursionError:
            activation.value = UNKNOWN
            self.notes.append(f"{activation.info.qualname} is nested too deeply to follow")
        finally:
            self.within_region = False
            self.depth = 0
            self._active.clear()
            self._stack.clear()

    # -- functions

    def walker(self, info: FunctionInfo, env: Environment, closure: Mapping[str, Value] | None = None) -> Walker:
        """A walker for one activation; one that records where facts about this function were asked for."""
        recording = self.recording
        if recording is not None and recording.wants(info):
            return recording.walker(self, info, env, closure, self.depth)
        return Walker(self, info, env, closure, self.depth)

    def declared(self, module: ModuleInfo, node: ast.expr | None, name: str, where: str) -> Value:
        """The value that an annotation promises; UNKNOWN without one. `name` and `where` go into the evidence."""
        return annotated(self, module, node, name, where)

    def forget(self, info: FunctionInfo) -> None:
        """Drop what was read from a function's text, which has changed."""
        for name in (p.arg for p in (*info.parameters, *info.node.args.kwonlyargs)):
            self.known_parameters.pop((info, name), None)
        self.reading.forget(info)
        self._decorated.pop(info, None)

    def inner_function(self, node: FunctionNode, outer: FunctionInfo) -> FunctionInfo:
        """The definition of a function inside another one."""
        found = self._inner.get(node)
        if found is None:
            found = self._inner[node] = FunctionInfo(node, outer.module, outer=outer)
        return found

    def decorated(self, info: FunctionInfo, bound: Value | None = None) -> Value:
        """What a definition's name stands for: what its decorators make of it.

        Most keep a function's meaning and have nothing that a rule could speak of; they are looked through.
        """
        if not info.decorators:
            return Function(info, bound=bound)
        if info not in self._decorated:
            self._decorated[info] = None
            self._decorated[info] = wrapped(self, info)
        wrapper = self._decorated[info]
        if wrapper is None:
            return Function(info, bound=bound)
        return Function(wrapper.info, bound=bound, closure=wrapper.closure)

    def enter(
        self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], w: Walk, node: ast.AST
    ) -> Value:
        """The value of a call of a function in reach. Walks its body unless that was done for such arguments."""
        info = function.info
        if info.decorators and self.within_region and not w.silent and isinstance(node, ast.expr):
            if any(info.decorated_with(name) for name in DISABLED):
                w.emit(Call, node, "torch.compiler.disable.<locals>.call", None, args, keywords)
                return self._silently(function, args, keywords, w, node)
            if any(info.decorated_with(name) for name in OPAQUE):
                return self._opaque(function, args, keywords, w, node)
        answer = WHILE_TRACING.get(f"{info.module.name}.{info.qualname}")
        if answer is not None:
            return answer
        if self.depth >= _DEEPEST or self._active.count(info) > self._most_recursion(function):
            return UNKNOWN
        if info.is_abstract:
            return annotated(self, info.module, getattr(info.node, "returns", None), info.name, info.qualname)
        if not self._stack:
            self.results_memoised.add(info)
        if info.decorators and (mode := decorated_mode(self.mode, info.module, info.decorators)) != self.mode:
            with self.within(mode):
                return self._entered(function, args, keywords, w)
        return self._entered(function, args, keywords, w)

    def _most_recursion(self, function: Function) -> int:
        """How many activations of a function there may be when one more is entered: where it is traced, one of them has
        no constants, and is asked again by its own calls."""
        return _RECURSION + (function.closure is None and self.within_region)

    def _entered(self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], w: Walk) -> Value:
        """The value of a call whose body is walked, unless that was done for such arguments."""
        info = function.info
        env = bind(self, function, args, keywords)
        if function.closure is not None:
            self._closures[info] += 1
            if self._closures[info] > _MOST_CLOSURES:
                return UNKNOWN
            return self.walk_body(info, env, function.closure, w.silent, w)
        value = None
        if w.silent and not self._apart:
            value = shared_results.shared_result(self, info, env, lambda: self._activated(info, env, w))
        if value is None:
            value = self._activated(info, env, w)
        if value is UNKNOWN and isinstance(function.bound, Class) and info.name.lstrip("_").startswith("from_"):
            # an alternate constructor, by the convention of its name, whose way to an instance can't be followed
            return Instance(function.bound.info, made_inside=self.within_region)
        return value

    def _activated(self, info: FunctionInfo, env: Environment, w: Walk) -> Value:
        """The value of a walk with such arguments, made now or before."""
        mode = self.mode
        many = self.variants[info] >= _MOST_VARIANTS
        if many or (self.within_region and self._active.count(info) >= _RECURSION):
            env = {name: _without_constants(value) for name, value in env.items()}
            self.generalised += many
        key = (info, bool(w.silent), self.within_region, mode, tuple((k, v.key) for k, v in env.items()))
        activation = self.activations.get(key)
        known = activation is not None
        if activation is None:
            self.variants[info] += 1
            activation = FunctionSummary(info, env, None, w.silent, self.within_region, mode)
            self.activations[key] = activation
        if self._stack:
            self._stack[-1].entered(activation, bool(w.situation.conditional))
        if known and self.follows:
            for name, value in env.items():
                if value is not activation.env[name]:
                    self.mixed_declarations |= declared_sources(value) ^ declared_sources(activation.env[name])
        if not known:
            self._stack.append(activation)
            closures = self._closures

            def walk() -> Value:
                self._closures = Counter()
                return self.walk_body(info, dict(env), None, w.silent, None)

            try:
                activation.value = self._recursion.settled(activation, key, walk)
            except RecursionError:
                activation.value = UNKNOWN
                raise
            finally:
                self._stack.pop()
                self._closures = closures
        value = activation.value or UNKNOWN
        if known:
            value = self._recursion.given(activation, self._stack, self.within_region)
        if activation.breaks:
            always = activation.always_breaks
            if self._stack:
                self._stack[-1].broke(w.always and always)
            w.resume(always)
            value = as_input(value, always)
        return value

    def walk_body(
        self,
        info: FunctionInfo,
        env: Environment,
        closure: Mapping[str, Value] | None,
        silent: int,
        caller: Walk | None,
    ) -> Value:
        """Walk a body. One that closes over its caller's names is walked as a part of `caller`."""
        walker = self.walker(info, env, closure)
        walker.silent = silent
        walker.situation.conditional = int(caller is not None and bool(caller.situation.conditional))
        if any(info.decorated_with(name) for name in _GRADIENTS_OFF) if info.decorators else False:
            walker.situation.gradients_off += 1
        self.depth += 1
        self._active.append(info)
        try:
            if isinstance(info.node, ast.Lambda):
                walker.statement = caller.statement if caller is not None else None
                return walker.eval(info.node.body)
            walker.run(info.node.body)
            value = walker.result
            if walker.yields and self.depth == 1 and self.region.kind == "compiled":
                walker.statement = info.node
                walker.emit(Generator, info.node)
        finally:
            self._active.pop()
            self.depth -= 1
        if value is UNKNOWN:
            value = annotated(self, info.module, getattr(info.node, "returns", None), f"{info.name}()", info.qualname)
            value = as_computed(value)
        return value

    def _silently(
        self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], w: Walk, node: ast.AST
    ) -> Value:
        with w.restoring():
            w.silent += 1
            return self.enter(function, args, keywords, w, node)

    def _opaque(
        self, function: Function, args: tuple[Value, ...], keywords: Mapping[str, Value], w: Walk, node: ast.AST
    ) -> Value:
        promised = annotated(
            self,
            function.info.module,
            getattr(function.info.node, "returns", None),
            function.info.name,
            function.info.qualname,
        )
        return as_computed(promised) if promised is not UNKNOWN else self._silently(function, args, keywords, w, node)


def _without_constants(value: Value) -> Value:
    """A value without what only one call knows of it."""
    return Static(value.type) if isinstance(value, Const) and value.value is not None else value
