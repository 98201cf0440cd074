"""Where a guard belongs that failed: its text, and the line of the program that it is about."""

from __future__ import annotations

import linecache
import re
from typing import Any

#: the line that a guard was made for, behind its text: "# return x * s  # model.py:61 in f"
_MADE_FOR = re.compile(r"#[^\n]*?(?P<file>[^\s#]+\.py):(?P<line>\d+) in \w+")
#: what the guards of all versions call a parameter: `L['x']` before 2.13, `x` since
_PARAMETER = re.compile(r"L\['(\w+)'\]|tensor '(\w+)|^\W*(?:len\()?([A-Za-z_]\w*)")
#: what torch says since 2.10 of a graph that another backend made; before, it names no guard where all of them hold
_OTHER_BACKEND = "BACKEND_MATCH failure: all guards hold, and the backend is another one"
#: lines of a signature that are looked through
_SIGNATURE = 40


def recompilation(code: Any, text: str) -> dict[str, Any]:
    """The guard of `text` that failed for a code object, and its place: the line that it was made for where TorchDynamo
    gives one in the file, else that of the parameter, else that of the function."""
    reason = " ".join(re.sub(r"^\d+/\d+: ", "", text.partition("  # ")[0]).split())[:300] or _OTHER_BACKEND
    made_for = _MADE_FOR.search(text)
    if made_for is not None and code.co_filename.endswith(made_for["file"].lstrip(".")):
        line = int(made_for["line"])
    else:
        line = _line_of_parameter(code, reason)
    return {"file": code.co_filename, "line": line, "function": code.co_name, "reason": reason}


def _line_of_parameter(code: Any, reason: str) -> int:
    found = _PARAMETER.search(reason)
    name = next((group for group in found.groups() if group), None) if found is not None else None
    if name not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return int(code.co_firstlineno)
    for line in range(code.co_firstlineno, code.co_firstlineno + _SIGNATURE):
        text = linecache.getline(code.co_filename, line)
        if re.search(rf"\b{name}\b", text.partition("#")[0]):
            return line
    return int(code.co_firstlineno)


#: what TorchDynamo says where it is told not to compile again
_REFUSED = re.compile(
    r"Detected recompile when .*?filename: '(?P<file>[^\n]*?)', function name: '(?P<name>[^\n]*?)', "
    r"line number: (?P<line>\d+)(?P<guards>.*)",
    re.DOTALL,
)
_REASON = re.compile(r"^\s*- \d+/\d+: (?P<guard>[^\n]*)", re.MULTILINE)


def refused(error: BaseException) -> dict[str, Any] | None:
    """The guard of the first graph, for which a function would be compiled again; None for another error, and for a
    frame that has no graph yet. Before 2.10 (measured with 2.8) nothing but that there is one is told."""
    text = str(error)
    found = _REFUSED.search(text)
    if found is None:
        unnamed = text.startswith("Detected recompile when")
        return {"file": "", "line": 0, "function": "", "reason": ""} if unnamed else None
    graphs = [match["guard"].partition("  #")[0] for match in _REASON.finditer(found["guards"])]
    if not graphs:
        return None
    reason = " ".join(graphs[-1].split())[:300]
    return {"file": found["file"], "line": int(found["line"]), "function": found["name"], "reason": reason}
