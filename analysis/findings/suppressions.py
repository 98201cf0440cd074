"""Suppression comments: `# graphmend: ignore[GM101] reason` for a line, `ignore-file[...]` for a file.

Text in, data out. A comment that suppresses nothing is itself a finding, GM001, so that none outlives its reason.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from graphmend.analysis.finding import Finding
from graphmend.analysis.rules import RULES
from graphmend.analysis.settings import Settings, current_code
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span

_DIRECTIVE = re.compile(
    r"#\s*graphmend:\s*(?P<what>ignore-file|ignore)(?![\w-])(?:\s*\[(?P<codes>[^\]]*)\])?\s*(?P<reason>.*)"
)
_CODES = tuple(rule.code for rule in RULES)

#: breaks that only a run can show; whether a comment on one is needed cannot be told from the text
SEEN_BY_DYNAMO_ONLY = ("GM901", "GM902", "GM903")
_DYNAMO = "GM9"


class UnusedSuppression:
    """
    What it does:
        Finds `# graphmend: ignore` comments that take no finding back.

    Why it breaks:
        It does not; but a comment that outlived its reason hides the next finding on its line.

    Example:
        y = torch.relu(x)  # graphmend: ignore[GM101] the mask is always full

    Use instead:
        y = torch.relu(x)

    Mends:
        none; delete the comment, or the code in it that is not needed

    References:
        Comments on breaks that only TorchDynamo sees (GM9) are never reported.
    """

    code = "GM001"
    name = "unused-suppression"
    message = "unused suppression"
    advice = "Delete the comment, or the code in it that is not needed."
    preview = False


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment. `codes` are rule codes or their beginnings; none of them means every rule."""

    span: Span
    text: str
    codes: tuple[str, ...]
    reason: str
    lines: tuple[int, int] | None
    """The first and last line that it covers; None: the whole file."""

    def moved(self, lines: int) -> Suppression:
        """The same comment so many lines further down."""
        if not lines:
            return self
        first, column, last, end = self.span
        covered = None if self.lines is None else (self.lines[0] + lines, self.lines[1] + lines)
        return replace(self, span=Span(first + lines, column, last + lines, end), lines=covered)

    def covers(self, finding: Finding) -> bool:
        return self.reaches(finding.span.line)

    def reaches(self, line: int) -> bool:
        return self.lines is None or self.lines[0] <= line <= self.lines[1]

    def names(self, code: str) -> bool:
        return not self.codes or code.startswith(self.codes)


def suppressions(source: Source) -> tuple[Suppression, ...]:
    """The comments of a file, in order."""
    if "graphmend:" not in source.text:
        return ()
    return tuple(_read(source))


def apply(source: Source, findings: Iterable[Finding], settings: Settings) -> tuple[Finding, ...]:
    """The findings that no comment suppresses, and GM001 for comments that suppress nothing, in order of the text."""
    return take_back(suppressions(source), source.path, findings, settings)


def take_back(
    comments: Sequence[Suppression], path: str, findings: Iterable[Finding], settings: Settings
) -> tuple[Finding, ...]:
    """As `apply`, where the comments of the file at `path` are known already."""
    findings = tuple(findings)
    if not comments:
        return findings
    used: set[tuple[int, str]] = set()
    kept: list[Finding] = []
    for finding in findings:
        taken = [i for i, comment in enumerate(comments) if comment.covers(finding) and comment.names(finding.code)]
        used.update((i, code) for i in taken for code in comments[i].codes or ("",) if finding.code.startswith(code))
        if not taken:
            kept.append(finding)
    for i, comment in enumerate(comments):
        unused = [code for code in comment.codes or ("",) if (i, code) not in used and _can_tell(code, settings)]
        if unused and not _covered(comment, comments):
            kept.append(_remark(path, comment, unused))
    return tuple(sorted(kept, key=lambda finding: finding.span[:2]))


def _can_tell(code: str, settings: Settings) -> bool:
    """Whether GM001 may name an unused code: the check looked for it, or no rule has it."""
    if not settings.selects(UnusedSuppression.code):
        return False
    if not _is_code(code):
        return True
    if code == UnusedSuppression.code or code.startswith(_DYNAMO):
        return False
    if any(ignored.startswith(code) for ignored in settings.ignore):
        return False
    return settings.selects(code) if code else any(selected in ("", "GM") for selected in settings.select)


def _is_code(code: str) -> bool:
    """Whether some rule has a code that is or begins with this one."""
    return any(known.startswith(code) for known in (UnusedSuppression.code, *SEEN_BY_DYNAMO_ONLY, *_CODES))


def _covered(comment: Suppression, comments: Iterable[Suppression]) -> bool:
    """Whether another comment suppresses GM001 itself here."""
    line = comment.span.line
    return any(UnusedSuppression.code in other.codes and other.reaches(line) for other in comments)


def _remark(path: str, comment: Suppression, unused: list[str]) -> Finding:
    where = "in this file" if comment.lines is None else "on this line"
    if unused == [""]:
        message = f"unused suppression: nothing is found {where}"
    else:
        unknown = [code for code in unused if not _is_code(code)]
        named = ", ".join(unused)
        message = (
            f"unused suppression: no rule has the code {', '.join(unknown)}"
            if unknown
            else f"unused suppression: {named} {'is' if len(unused) == 1 else 'are'} not found {where}"
        )
    return Finding(
        code=UnusedSuppression.code,
        name=UnusedSuppression.name,
        message=message,
        path=path,
        span=comment.span,
        function="",
        region="assumed",
        certainty="certain",
        effect="splits",
        evidence=(),
        advice="Delete the comment"
        if unused == [""] or len(unused) == len(comment.codes)
        else "Delete the unused codes",
        key=f"{UnusedSuppression.code}::{' '.join(comment.text.split())}",
    )


def _read(source: Source) -> Iterator[Suppression]:
    line_start: int | None = None
    waiting: list[tuple[Span, re.Match[str]]] = []
    for token in _tokens(source):
        if token.type == tokenize.COMMENT:
            if match := _DIRECTIVE.search(token.string):
                line, column = token.start
                span = Span(line, column + match.start(), line, column + len(token.string.rstrip()))
                if match["what"] == "ignore-file":
                    if token.start[1] == 0:  # at the top level only; anywhere else it would look like a line's
                        yield _suppression(span, match, None)
                else:
                    waiting.append((span, match))
        elif token.type == tokenize.NEWLINE:
            # the comment behind the last part of a statement is meant for all of it
            for span, match in waiting:
                first = line_start if span.line == token.start[0] and line_start is not None else span.line
                yield _suppression(span, match, (first, span.line))
            waiting, line_start = [], None
        elif token.type not in _LAYOUT and line_start is None:
            line_start = token.start[0]
    yield from (_suppression(span, match, (span.line, span.line)) for span, match in waiting)


_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


def _suppression(span: Span, match: re.Match[str], lines: tuple[int, int] | None) -> Suppression:
    codes = tuple(dict.fromkeys(current_code(code) for code in re.split(r"[,\s]+", match["codes"] or "") if code))
    return Suppression(span, match[0], codes, match["reason"].strip(), lines)


def _tokens(source: Source) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a text, up to where it stops being Python; lines are those of `source`, whatever ends them."""
    lines = (source.lines.line(number) + "\n" for number in range(len(source.lines)))
    try:
        yield from tokenize.generate_tokens(lambda: next(lines, ""))
    except (tokenize.TokenError, SyntaxError):
        return
