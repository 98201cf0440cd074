"""The analysis of one file: enters functions, computes a summary for each, asks the rules and keeps their verdicts.

A function is walked once for each combination of abstract arguments (evidence aside), so a helper that is called with a
tensor here and with a number there is judged for both.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from graphmend.analysis.driver.driven import Driven, drive
from graphmend.analysis.interpreter.events import (
    Call,
    CustomCall,
    Event,
    Generator,
    Operation,
    loses_frame,
    only_some_rounds,
)
from graphmend.analysis.interpreter.interface import Walk
from graphmend.analysis.interpreter.walk.statements import Walker
from graphmend.analysis.interprocedural import shared_results
from graphmend.analysis.interprocedural.call_stack import CallStack
from graphmend.analysis.interprocedural.decorators import DISABLED, OPAQUE, OPAQUE_CALLS, gradients_off, wrapped
from graphmend.analysis.interprocedural.interface import Recorder
from graphmend.analysis.interprocedural.on_demand import Reading
from graphmend.analysis.interprocedural.program_context import ProgramContext
from graphmend.analysis.interprocedural.recursion import Recursion
from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.interprocedural.summary_table import SummaryTable
from graphmend.analysis.interprocedural.verdicts import Verdict
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.dependence import declared_sources
from graphmend.analysis.lattice.environment import Environment
from graphmend.analysis.lattice.values import UNKNOWN, Const, Static, Value, as_input
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.program.project import Project
from graphmend.analysis.region.calls_in_sight import Callers, CallsInSight
from graphmend.analysis.region.dynamo_config import decorated_mode
from graphmend.analysis.region.mode import Mode
from graphmend.analysis.region.region import Region, Root
from graphmend.analysis.resolution.annotations import annotated
from graphmend.analysis.resolution.classes import is_module_class, mro
from graphmend.analysis.resolution.custom_operators import of_function
from graphmend.analysis.resolution.parameters import as_computed, bind, is_refused, parameters
from graphmend.analysis.resolution.tracing_answers import WHILE_TRACING
from graphmend.analysis.rules import RULES
from graphmend.analysis.rules.dispatch import Judging
from graphmend.analysis.rules.rule import Break, Rule
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.nodes import as_statement

#: walks of one function at a time before constants among a recursive call's arguments stop to count
_RECURSION = 2


class AnalysisSession(ProgramContext):
    """The state of one analysis: call stack, summaries, rules, and what was evaluated on demand."""

    def __init__(
        self, module: ModuleInfo | None, project: Project, settings: Settings, rules: tuple[Rule, ...] = RULES
    ) -> None:
        super().__init__(module, project, settings)
        self.notes: list[str] = []
        self.stack = CallStack()
        self.summaries = SummaryTable()
        self.region = Region("assumed", None, None)
        self.recording: Recorder | None = None
        self.judging = Judging(rules, settings, self.torch, self._is_module, partial(mro, session=self))
        self.reading = Reading(self)
        self.follows = False
        """Whether edits are followed: the call that a summary was computed for may then be gone from the text."""
        self.in_sight = CallsInSight(self, None, "anyone")
        self.driven: Driven | None = None
        """What the driver code of the checked module compiles, and the objects that it makes."""
        self._recursion = Recursion(self.summaries)
        self._decorated: dict[FunctionInfo, Function | None] = {}

    def drive(self, callers: Callers = "known") -> Driven | None:
        """Execute the driver code of the checked module: what it compiles. `callers` are those whose arguments count
        where nothing else says what the parameters of compiled functions are."""
        assert self.module is not None
        self.driven = drive(self, self.module)
        self.in_sight = CallsInSight(self, self.driven, callers)
        return self.driven

    def driven_attribute(self, info: ClassInfo, name: str, *, for_good: bool = False) -> Value:
        """What driver code made an attribute of the instances of a class, in traced code; UNKNOWN where it did not."""
        return self.in_sight.attribute(info, name, for_good) if self.stack.traced else UNKNOWN

    def driven_variable(self, module: ModuleInfo, name: str) -> Value:
        """What driver code made a global, in traced code; UNKNOWN where it did not."""
        return self.in_sight.variable(module, name) if self.stack.traced else UNKNOWN

    @property
    def mode(self) -> Mode:
        """The tracing mode of the current code."""
        return self.judging.mode

    def _is_module(self, value: Instance) -> bool:
        return is_module_class(self, value.info)

    @contextmanager
    def within(self, mode: Mode) -> Iterator[None]:
        """Run the block in another tracing mode."""
        outer, self.judging.mode = self.judging.mode, mode
        try:
            yield
        finally:
            self.judging.mode = outer

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Run the block with an empty call stack, no variant counts and a private summary table, so that its result
        does not depend on the caller. Needed for results that files share."""
        with self.stack.isolated(), self.summaries.isolated(), self._recursion.isolated():
            yield

    def note_attribute_read(self, info: ClassInfo, name: str) -> None:
        """Record that the current summary, or evaluation on demand, depends on an attribute."""
        under_way = self.stack.innermost
        (self.reading.read_set if under_way is None else under_way.reads).add((info, name))
        if info.is_inner:  # it goes with the walk that defines it; what it inherits is asked for but once
            self.reading.unscoped_reads.update((cls, name) for cls in mro(info, self)[1:])

    def close(self) -> None:
        """Drop all summaries and caches."""
        super().close()
        self.reading.close()
        self.summaries.clear()
        self._decorated.clear()

    # -- rules

    def listens(self, callee: str) -> bool:
        """Whether some rule wants the calls of `callee`."""
        return bool(self.judging.rules_for(callee))

    def judge(self, w: Walk, kind: type[Event], node: ast.expr | ast.stmt, details: tuple[Any, ...]) -> None:
        """Make an event, ask the rules that subscribe to it, and keep the verdict."""
        if not self.stack.traced:
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
        summary = self.stack.walks[-1]
        if summary.lost_before(verdict):
            return
        if verdict.loses_frame and not only_some_rounds(situation):
            summary.frame_lost_at.setdefault(breaks.origin, node)
        if breaks.effect != "recompiles":
            summary.broke(w.always)
        place = (w.info.module.source.path, node.lineno, node.col_offset, rule.code)
        summary.add(place, verdict)

    # -- roots

    def walk_root(self, root: Root) -> None:
        """Analyse a root."""
        function, region = root.function, root.region
        self.region = region
        self.judging.mode = region.mode
        with self.stack.region(traced=True):
            self._walk_as_root(
                function, region, parameters(self, function.info, function.bound, root.example_arguments)
            )
            if function.info.decorators:
                wrapper = self.decorated(function.info, function.bound)
                if isinstance(wrapper, Function) and wrapper.info is not function.info:
                    self._walk_as_root(wrapper, region, parameters(self, wrapper.info, function.bound))

    def _walk_as_root(self, function: Function, region: Region, env: Environment) -> None:
        if region.kind == "compiled" and self.reading.examples(function) is None:
            self.in_sight.parameters(function.info, env)
        summary = FunctionSummary(function.info, env, function.closure, 0, True, region.mode, region.alone)
        self.summaries.roots.append((summary, region))
        self.walk(summary)

    def walk(self, summary: FunctionSummary) -> None:
        """Compute a summary (again), as the outermost one."""
        summary.clear()
        self._recursion.forget()
        self.judging.mode = summary.mode
        with self.stack.root(summary):
            try:
                env = dict(summary.env)
                summary.value = self.walk_body(summary.info, env, summary.closure, summary.silent, None)
            except RecursionError:
                summary.value = UNKNOWN
                self.notes.append(f"{summary.info.qualname} is nested too deeply to follow")

    # -- functions

    def walker(self, info: FunctionInfo, env: Environment, closure: Mapping[str, Value] | None = None) -> Walker:
        """A walker for one function body; a recording one where facts about the function are wanted."""
        recording = self.recording
        if recording is not None and recording.wants(info):
            return recording.walker(self, info, env, closure, self.stack.depth)
        return Walker(self, info, env, closure, self.stack.depth)

    def declared(self, module: ModuleInfo, node: ast.expr | None, name: str, where: str) -> Value:
        """The value that an annotation promises; UNKNOWN without one. `name` and `where` go into the evidence."""
        return annotated(self, module, node, name, where)

    def forget(self, info: FunctionInfo) -> None:
        """Drop what was evaluated from a function whose text changed."""
        self.forget_parameters(info)
        self.reading.forget(info)
        self._decorated.pop(info, None)

    def decorated(self, info: FunctionInfo, bound: Value | None = None) -> Value:
        """The function that the name of a definition stands for, after its decorators.

        Decorators without anything that a rule could judge are ignored.
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

    def enter(self, function: Function, args: Arguments, keywords: Keywords, w: Walk, node: ast.AST) -> Value:
        """The value of a call of a function whose source is available, from its summary for these arguments."""
        info = function.info
        if info.decorators and self.stack.traced and not w.silent and isinstance(node, ast.expr):
            if any(info.decorated_with(name) for name in DISABLED):
                w.emit(Call, node, "torch.compiler.disable.<locals>.call", None, args, keywords)
                return self._silently(function, args, keywords, w, node)
            if any(info.decorated_with(name) for name in OPAQUE):
                return self._called_opaque(function, args, keywords, w, node)
        if (caller := self.stack.innermost) is not None and w.info is caller.info and caller.leaves_out(function):
            return self._promised(info)
        if "try" in w.situation.blocks and isinstance(node, ast.Call) and is_refused(function, args, keywords, node):
            w.emit(Operation, node, "bind", function)
        answer = WHILE_TRACING.get(f"{info.module.name}.{info.qualname}")
        if answer is not None:
            return answer
        if self.stack.too_deep() or self.stack.times_active(info) > self._most_recursion(function):
            return UNKNOWN
        if info.is_abstract:
            return annotated(self, info.module, getattr(info.node, "returns", None), info.name, info.qualname)
        if self.stack.innermost is None:
            self.summaries.results_memoised.add(info)
        if self.recording is not None and self.stack.traced and not w.silent:
            self.recording.called(info, w, node)
        if info.decorators and (mode := decorated_mode(self.mode, info.module, info.decorators)) != self.mode:
            with self.within(mode):
                return self._entered(function, args, keywords, w)
        return self._entered(function, args, keywords, w)

    def _most_recursion(self, function: Function) -> int:
        """How many calls of a function may be on the stack when one more is entered: in traced code the last of them is
        without constants, so that its recursive calls find its own summary."""
        return _RECURSION + (function.closure is None and self.stack.traced)

    def _entered(self, function: Function, args: Arguments, keywords: Keywords, w: Walk) -> Value:
        """The value of a call of a function that is not opaque: from a shared result, a summary, or a walk."""
        info = function.info
        env = bind(self, function, args, keywords)
        if function.closure is not None:
            if not self.stack.may_close_over(info):
                return UNKNOWN
            return self.walk_body(info, env, function.closure, w.silent, w)
        value = None
        if w.silent and not self.stack.is_isolated:
            value = shared_results.shared_result(self, info, env, lambda: self._value_of_call(info, env, w))
        if value is None:
            value = self._value_of_call(info, env, w)
        if value is UNKNOWN and isinstance(function.bound, Class) and info.name.lstrip("_").startswith("from_"):
            # an alternate constructor, by the convention of its name, whose way to an instance can't be followed
            return Instance(function.bound.info, made_inside=self.stack.traced)
        return value

    def _value_of_call(self, info: FunctionInfo, env: Environment, w: Walk) -> Value:
        """The value from the summary for these arguments, which is computed where there is none."""
        stack, table, traced = self.stack, self.summaries, self.stack.traced
        many = table.has_many_variants(info)
        if many or (traced and stack.times_active(info) >= _RECURSION):
            env = {name: _without_constants(value) for name, value in env.items()}
            table.generalised += many
        key = (info, bool(w.silent), traced, self.mode, tuple((k, v.key) for k, v in env.items()))
        known = table.get(key)
        summary = known or FunctionSummary(info, env, None, w.silent, traced, self.mode)
        if known is None:
            table.add(key, summary)
        caller = stack.innermost
        if caller is not None:
            caller.entered(summary, bool(w.situation.conditional))
        if known is None:
            value = self._walked(summary, key)
        else:
            if self.follows:
                for name, value in env.items():
                    if value is not known.env[name]:
                        table.mixed_declarations |= declared_sources(value) ^ declared_sources(known.env[name])
            value = self._recursion.given(known, stack.walks, traced)
        if summary.breaks:
            always = summary.always_breaks
            if caller is not None:
                caller.broke(w.always and always)
            w.resume(always)
            value = as_input(value, always)
        return value

    def _walked(self, summary: FunctionSummary, key: Hashable) -> Value:
        """Compute a new summary: its value."""

        def walk() -> Value:
            self.stack.forget_closures()
            return self.walk_body(summary.info, dict(summary.env), None, summary.silent, None)

        with self.stack.walking(summary):
            try:
                summary.value = self._recursion.settled(summary, key, walk)
            except RecursionError:
                summary.value = UNKNOWN
                raise
        return summary.value or UNKNOWN

    def walk_body(
        self,
        info: FunctionInfo,
        env: Environment,
        closure: Mapping[str, Value] | None,
        silent: int,
        caller: Walk | None,
    ) -> Value:
        """Walk a function's body and return the value of the call. A closure is walked as a part of `caller`."""
        walker = self.walker(info, env, closure)
        walker.silent = silent
        walker.situation.conditional = int(caller is not None and bool(caller.situation.conditional))
        if info.decorators:
            walker.situation.gradients_off = gradients_off(info)
        with self.stack.body(info):
            if isinstance(info.node, ast.Lambda):
                walker.statement = as_statement(info.node) if caller is None else caller.statement
                return walker.eval(info.node.body)
            walker.run(info.node.body)
            value = walker.result
            if walker.yields and self.stack.depth == 1 and self.region.kind == "compiled":
                walker.statement = info.node
                walker.emit(Generator, info.node)
        if value is UNKNOWN:
            value = annotated(self, info.module, getattr(info.node, "returns", None), f"{info.name}()", info.qualname)
            value = as_computed(value)
        return value

    def _silently(self, function: Function, args: Arguments, keywords: Keywords, w: Walk, node: ast.AST) -> Value:
        with w.restoring():
            w.silent += 1
            return self.enter(function, args, keywords, w, node)

    def _called_opaque(self, function: Function, args: Arguments, keywords: Keywords, w: Walk, node: ast.expr) -> Value:
        """The value of a call of a function that Dynamo does not look into; the rules are told of it."""
        info = function.info
        if (operator := of_function(info)) is not None:
            w.emit(CustomCall, node, operator, args)
        how = next((call for name, call in OPAQUE_CALLS.items() if info.decorated_with(name)), None)
        if how is not None:
            w.emit(Call, node, f"{how}.call", function, args, keywords)
        value = self._opaque(function, args, keywords, w, node)
        if how is not None:
            w.emit(Call, node, f"{how}.result", value, args, keywords)
        return value

    def _opaque(self, function: Function, args: Arguments, keywords: Keywords, w: Walk, node: ast.AST) -> Value:
        promised = self._promised(function.info)
        return promised if promised is not UNKNOWN else self._silently(function, args, keywords, w, node)

    def _promised(self, info: FunctionInfo) -> Value:
        """The result of a function as its annotation says."""
        return as_computed(annotated(self, info.module, getattr(info.node, "returns", None), info.name, info.qualname))


def _without_constants(value: Value) -> Value:
    """A value without its constant, so that more calls share a summary."""
    return Static(value.type) if isinstance(value, Const) and value.value is not None else value
