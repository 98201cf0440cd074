"""Which lines break under this interpreter's torch: read from its own `graph_breaks` log, by nothing of GraphMend's.

    PY graph_breaks.py FOLDER

Each file of the folder has an `example_inputs()`, and a function `case`, `f` or the like that is compiled with
`torch.compile` and called with each of the examples. The answer is JSON: by file the lines, the breaks in
other files, and what a call raised.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

from forks import in_a_fork

_HEAD = re.compile(r"Graph break (?:\(.*?\) )?in user code at (?P<file>.*):(?P<line>\d+)")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TRACEBACK = "User code traceback"


class Log(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, told_before: Any) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        self.told_before = told_before

    def emit(self, record: logging.LogRecord) -> None:
        self.told_before.reset()  # else the next break at this place comes without the lines that led there
        try:
            self.texts.append(record.getMessage())
        except TypeError:  # torch 2.8 logs a repeated break with one argument too many
            self.texts.append(str(record.msg))


def place(text: str, path: str) -> tuple[str, int] | None:
    """What a log entry blames: the innermost frame in the file, else the innermost one, else what its head names."""
    frames = [(found["file"], int(found["line"])) for found in _FRAME.finditer(text.split(_TRACEBACK, 1)[-1])]
    own = [frame for frame in frames if frame[0] == path]
    if own or frames:
        return (own or frames)[-1]
    head = _HEAD.search(text)
    return (head["file"], int(head["line"])) if head else None


def observe(path: Path) -> dict[str, Any]:
    """Imports a file, calls what it compiles, and reads the log."""
    import torch
    import torch._dynamo.utils

    torch.set_num_threads(1)
    torch._logging.set_logs(graph_breaks=True)
    log = Log(torch._dynamo.utils.graph_break_dup_warning_checker)
    for name in list(logging.root.manager.loggerDict):
        if name.endswith("__graph_breaks"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [log], False
    compile_ = torch.compile

    def compiled(model: Any = None, **options: Any) -> Any:
        options["backend"] = "eager"
        return compile_(model, **options)

    torch.compile = compiled  # type: ignore[assignment]
    raised = None
    try:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        function = next(vars(module)[name] for name in ("case", "f", "step", "main") if name in vars(module))
        for arguments in module.example_inputs():
            try:
                function(*arguments)
            except Exception as error:
                raised = f"{type(error).__name__}: {error}"[:200]
    except BaseException as error:
        raised = f"{type(error).__name__}: {error}"[:200]
    found = {blamed for text in log.texts if (blamed := place(text, str(path))) is not None}
    return {
        "lines": sorted(line for file, line in found if file == str(path)),
        "elsewhere": sorted(blamed for blamed in found if blamed[0] != str(path)),
        "raised": raised,
    }


def measured(path: Path) -> dict[str, Any]:
    """`observe` in a process of its own."""
    found: dict[str, Any] | None = in_a_fork(observe, path)
    return found if found is not None else {"lines": [], "elsewhere": [], "raised": "it did not end"}


def main() -> None:
    import torch
    import torch._dynamo  # before the forks

    files = sorted(Path(sys.argv[1]).resolve().glob("*.py"))
    print(json.dumps({"torch": torch.__version__, "files": {file.name: measured(file) for file in files}}))


if __name__ == "__main__":
    main()
