"""How questions and answers look on a terminal and as JSON."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from graphmend.cli.asking.places import Break, Done
from graphmend.cli.paths import relative
from graphmend.cli.places import line
from graphmend.model import prompt
from graphmend.model.ask import conversation
from graphmend.model.endpoint import Endpoint
from graphmend.workspace.cache import digest


def offered(breaks: Sequence[Break], out: TextIO) -> int:
    """Every break that may be asked about, and what its question costs; 1 where there is one."""
    for each in breaks:
        cost = f"{each.characters:,} characters" if each.characters else "too long to ask about"
        out.write(f"{_place(each)} {each.asked.finding.code} {each.asked.finding.message} [{cost}]\n")
    if breaks:
        out.write(f"\n{len(breaks)} without a mend; --model URL#NAME asks, --show tells what would be sent\n")
    else:
        out.write("No break is without a mend\n")
    return int(bool(breaks))


def questions(breaks: Sequence[Break], endpoint: Endpoint | None, out: TextIO) -> None:
    """The exact texts, but for the random mark around the source, and where they would go."""
    where = f"to {endpoint.address}" if endpoint is not None else "nowhere: no --model is named"
    for each in breaks:
        out.write(f"# {_place(each)}: {each.characters:,} characters, {where}\n\n")
        try:
            out.write(prompt.shown(conversation(each.asked)) + "\n\n")
        except prompt.TooLong as error:
            out.write(f"{error}\n\n")


def answers(done: Sequence[Done], endpoint: Endpoint, out: TextIO) -> None:
    """A diff for each mend with what was verified, and one line for each question without."""
    for one in done:
        if one.answer.fix is None:
            out.write(f"{_place(one.asked)}: not mended: {one.answer.problem}\n")
            continue
        before, after = one.answer.breaks or (0, 0)
        out.write(f"{_place(one.asked)}: {one.answer.fix.title}; {before} breaks before, {after} after\n")
        out.write(f"  unsafe: {one.answer.fix.reason}\n")
        out.write(_diff(one))
    usage = endpoint.usage
    mended = sum(one.answer.fix is not None for one in done)
    tokens = f", {usage.prompt_tokens + usage.answer_tokens:,} tokens" if usage.prompt_tokens else ""
    out.write(f"{mended} of {len(done)} mended; {usage.requests} requests{tokens}\n")


def json_of(done: Sequence[Done], endpoint: Endpoint, out: TextIO) -> None:
    """Everything as one JSON object; scripts rely on the keys."""
    data = {
        "model": endpoint.name,
        "host": endpoint.host,
        **asdict(endpoint.usage),
        "answers": [_data(d) for d in done],
    }
    json.dump(data, out, indent=2)
    out.write("\n")


def _data(done: Done) -> dict[str, Any]:
    finding, answer = done.asked.asked.finding, done.answer
    return {
        "path": finding.path,
        "line": finding.span.line,
        "code": finding.code,
        "key": finding.key,
        "mended": answer.fix is not None,
        "problem": answer.problem or None,
        "requests": answer.requests,
        "tries": [[gate._asdict() for gate in gates] for gates in answer.gates],
        "breaks": list(answer.breaks) if answer.breaks else None,
        "runs": answer.runs,
        "reason": answer.fix.reason if answer.fix else None,
        "differences": [d._asdict() for d in answer.fix.differences] if answer.fix else [],
        "diff": _diff(done) if answer.fix else None,
        "question": digest(done.asked.asked.facts.source.text, finding.key),
    }


def progress(stage: str) -> None:
    """A line on a terminal's standard error; nothing in a pipe."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{stage}\n")


def _diff(done: Done) -> str:
    path = relative(done.asked.asked.finding.path)
    before, after = done.asked.asked.facts.source.text, done.answer.text
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _place(each: Break) -> str:
    finding = each.asked.finding
    return line(finding.path, finding.span.line)
