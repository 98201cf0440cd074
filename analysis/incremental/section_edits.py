"""What the new text of one section says: it is taken over into the definitions, and what follows is analysed again."""

from __future__ import annotations

import ast

from graphmend.analysis.driver.driven import Driven
from graphmend.analysis.incremental.fingerprints import (
    Fingerprint,
    attribute_writers,
    class_head,
    defines,
    differing,
    fingerprint,
    has_global_effect,
)
from graphmend.analysis.incremental.invalidation import Change, Invalidation, given_by
from graphmend.analysis.incremental.sections import (
    Outside,
    Parsed,
    Section,
    Sections,
    count_lines,
    first_indent,
    first_line,
    parse,
    split_at_line,
)
from graphmend.analysis.program.attribute_flags import Flags, sets_flags
from graphmend.analysis.program.definitions import ClassInfo, ModuleInfo
from graphmend.analysis.region.offered_roots import named_functions
from graphmend.analysis.syntax.function_source import BEFORE_INDENT
from graphmend.analysis.syntax.nodes import statements_of
from graphmend.analysis.syntax.source import Source

Definition = ast.FunctionDef | ast.AsyncFunctionDef


class SectionEdits:
    """Takes over new texts of sections. `whole` is the text of the file with the edit."""

    def __init__(
        self,
        module: ModuleInfo,
        sections: Sections,
        invalidation: Invalidation,
        driven: Driven | None,
        before: str,
    ) -> None:
        """`driven` is what the file's driver code compiles, `before` the text before its first edit."""
        self._driven = driven
        self._module, self._sections, self._invalidation = module, sections, invalidation
        self._path = module.source.path
        module.flags = self._flags = Flags(module, before)

    def unit(self, section: Section, text: str, parsed: Parsed, whole: str) -> bool:
        """Analyse a function's new text, and statements that were put behind it. False where that can't be followed and
        the whole text must be analysed."""
        statements = parsed.inner + parsed.outer
        node, rest = statements[0] if statements else None, statements[1:]
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or first_indent(text) != section.indent:
            return False
        if not rest:
            return self._function(section, node, text, whole)
        index = section.index
        own, behind = split_at_line(text, first_line(rest[0]) - parsed.inserted)
        if index + 1 == len(self._sections.all) or not own.endswith(("\n", "\r")):
            return False
        gap = self._sections.all[index + 1]
        if gap.info is not None or gap.broken or not gap.parses_alone:
            return False
        if gap.text is None:
            gap.text = self._sections.own(gap, whole)
        self._sections.give(index, len(behind), count_lines(behind))
        gap_text = self._sections.own(gap, whole)
        gap_parsed = parse(gap_text, self._sections.following(gap.index))
        if gap_parsed is None:
            return False
        return self._function(section, node, own, whole) and self.gap(gap, gap_text, gap_parsed, whole)

    def _function(self, section: Section, node: Definition, text: str, whole: str) -> bool:
        """Analyse a function's new text; False where the edit can't be followed."""
        info, old = section.info, section.text
        assert info is not None
        assert old is not None
        before = section.fingerprint if isinstance(section.fingerprint, Fingerprint) else fingerprint(info.node)
        now = fingerprint(node)
        if self._driven is not None and self._driven.follows(info, text):
            return False
        if before.head != now.head or has_global_effect(old, [info.node]) or has_global_effect(text, [node]):
            return False
        if info.is_passthrough is not None or (info.name == "example_inputs" and info.owner is None):
            return False
        flagged = self._flags.edited(old, text)
        if flagged is None:
            return False
        if self._module.bound.changed(old, [info.node], text, [node]):
            return False
        sets, gives = list(sets_flags(info)), given_by(info)
        change = Change({info}, attributes=self._invalidation.attributes_named(flagged))
        info.replaced(node, Source(BEFORE_INDENT + text if section.indent else text, self._path))
        info.moved(self._sections.line(section.index) - (2 if section.indent else 1))
        if sets != list(sets_flags(info)):
            return False
        if info.owner is not None and (gives or given_by(info)):
            self._gives(info.owner, gives | given_by(info), change)
        if not self._invalidation.redeclare(info) or before.signature != now.signature:
            change.signature_changed.add(info)
        section.fingerprint, section.text = now, text
        return self._invalidation.apply(change, whole)

    def _gives(self, owner: ClassInfo, names: set[str], change: Change) -> None:
        """Note in `change` the attributes that a method may set to other values."""
        before = {name: attribute_writers(owner, name) for name in names}
        owner.reread()
        change.attributes |= {(owner, name) for name in names}
        change.providers_changed |= {
            (owner, name) for name, those in before.items() if those != attribute_writers(owner, name)
        }

    def gap(self, section: Section, text: str, parsed: Parsed, whole: str) -> bool:
        """Analyse the new text between functions; False where the edit can't be followed."""
        old = section.text
        assert old is not None
        if first_indent(text) not in (None, "", self._sections.before(section.index)):
            return False
        outside = self._outside(section, parsed)
        if outside is None or any(defines(*one) for one in (*section.outside, *outside)):
            return False
        if any(has_global_effect(t, [s for _, s in its]) for t, its in ((old, section.outside), (text, outside))):
            return False
        flagged = self._flags.edited(old, text)
        if flagged is None:
            return False
        if self._module.bound.changed(old, [s for _, s in section.outside], text, [s for _, s in outside]):
            return False
        change = Change(attributes=self._invalidation.attributes_named(flagged))
        removed, added = differing(section.outside, outside)
        if (removed or added) and self._driven is not None:
            return False
        if (removed or added) and not self._states(section, outside, removed + added, change):
            return False
        if self._serves_others(removed, added):
            return False
        section.text = text
        return self._invalidation.apply(change, whole)

    def _serves_others(self, removed: list[Outside], added: list[Outside]) -> bool:
        """Whether the top level names other functions than before: which serve it decides what is traced."""
        before, now = (
            named_functions(self._module, [s for owner, s in those if owner is None]) for those in (removed, added)
        )
        return before != now

    def _outside(self, section: Section, parsed: Parsed) -> list[Outside] | None:
        """The statements between functions; None where classes came or went."""
        before = self._sections.all[section.index - 1].info if section.index else None
        owner = before.owner if before is not None else None
        if parsed.nested or (parsed.inner and owner is None):
            return None
        classes = {s.name: s for o, s in section.outside if o is None and isinstance(s, ast.ClassDef)}
        found: list[Outside] = [(owner, statement) for statement in parsed.inner]
        for statement in parsed.outer:
            if not isinstance(statement, ast.ClassDef):
                found.append((None, statement))
                continue
            known = classes.pop(statement.name, None)
            cls = self._module.classes.get(statement.name)
            if known is None or cls is None or cls.node is not known or class_head(known) != class_head(statement):
                return None
            found.append((None, known))
            found += [(cls, inner) for inner in statement.body]
        return found if not classes else None

    def _states(self, section: Section, outside: list[Outside], changed: list[Outside], change: Change) -> bool:
        """Update imports, globals and class members from changed statements; False where that can't be followed."""
        module = self._module
        if any(
            isinstance(s, ast.ImportFrom) and s.names[0].name == "*" for _, c in changed for s in statements_of([c])
        ):
            return False
        section.outside = outside
        bound = {name for owner, c in changed if owner is None for name in self._invalidation.bound(c)}
        everything = [one for other in self._sections.all for one in other.outside]
        if bound:
            before = {n: (module.imports.get(n), n in module.globals, n in module.annotations) for n in bound}
            module.define_again(s for owner, s in everything if owner is None)
            now = {n: (module.imports.get(n), n in module.globals, n in module.annotations) for n in bound}
            change.names |= {n for n in bound if before[n] != now[n]}
            change.globals |= bound
        for cls in dict.fromkeys(owner for owner, _ in changed if owner is not None):
            cls.define_again(s for owner, s in everything if owner is cls)
            if not self._invalidation.names_in_class(cls, [s for owner, s in changed if owner is cls], change):
                return False
        return True
