"""
Let TorchDynamo say which programs of `programs/` compile anew, and what varied.

    python tests/analysis/recompilations/label.py [FILE...]

Writes `expected.json`: program -> {"compilations", "again": how many of them were of a function that was compiled
before, "varies": [what], "guards": [text]}. Each program runs in a process of its own, with the default backend
replaced by one that runs the graph as it is.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.json"
SECONDS = 120


#: a name, with attributes and items of it
_PATH = re.compile(r"[A-Za-z_]\w*(?:(?:\._(?:parameters|modules|buffers)\['\w+'\]|\[[^\]]*\]|\.[A-Za-z_]\w*(?!\())+)?")


def programs(folder: Path = HERE / "programs") -> dict[str, str]:
    """The programs of `folder`: `<file>/<name>` -> text."""
    found = {}
    for file in sorted(folder.glob("*.txt")):
        for block in re.split(r"(?m)^#: ", file.read_text(encoding="utf-8"))[1:]:
            name, _, text = block.partition("\n")
            found[f"{file.stem}/{name.strip()}"] = text.strip("\n") + "\n"
    return found


def what_varies(guard: str) -> str:
    """What a guard is about, in one word: a parameter, an attribute, a key, or a part of torch's global state."""
    text = guard.split("# ")[0].strip()
    if not text:
        return "BACKEND_MATCH"  # before 2.10 torch names no guard where all hold, and the backend is another one
    state = re.match(r"GLOBAL_STATE changed: (\w+)", text)
    if state:
        return state[1]
    tensor = re.match(r"(?:tensor|expected type of) '(.+?)' (?:\w+ mismatch|rank mismatch|Tensor|to be a tensor)", text)
    source = tensor[1] if tensor else text
    if tensor and "_parameters[" in source and "requires_grad mismatch" in text:
        return "requires_grad"
    key = re.search(r"(?:G|globals\(\))\['(\w+)'\]|keywords\['(\w+)'\]", source)
    if key:
        return key[1] or key[2]
    bare = re.sub(r"^(?:not |len\(|list\(dict\.keys\(|___\w+\(|\()+", "", source)
    path = _PATH.search(bare)
    words = re.findall(r"[A-Za-z_]\w*", path[0]) if path else [source]
    return words[-1] if words[-1] not in ("__defaults__", "__code__") else words[0]


def run(text: str) -> dict[str, Any]:
    """Run the program `text` and say what was compiled more than once."""
    import runpy

    import torch
    from torch._dynamo.utils import get_compilation_metrics

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        Path(path).write_text(text, encoding="utf-8")
        module = runpy.run_path(path)
        torch.manual_seed(0)
        module["calls"]()
    every = get_compilation_metrics()
    frames = [(m.co_name, m.co_filename, m.co_firstlineno) for m in every]
    again = [m for m in every if m.recompile_reason]
    guards = [re.sub(r"^\d+/\d+: ", "", m.recompile_reason.splitlines()[0]).split("  #")[0].strip() for m in again]
    return {
        "compilations": len(every),
        "again": len(frames) - len(set(frames)),
        "varies": sorted({what_varies(guard) for guard in guards}),
        "guards": guards,
    }


def _child(text: str, pipe: Any) -> None:
    try:
        pipe.send(run(text))
    except BaseException as error:
        pipe.send({"error": f"{type(error).__name__}: {error}"})


def label(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What TorchDynamo says of each program."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    import torch._dynamo.convert_frame
    import torch._inductor.compile_fx

    torch._inductor.compile_fx.compile_fx = lambda graph, inputs, **_: graph
    # behind each compilation torch 2.13 times the guards for a log, which takes half of the time of a small one
    vars(torch._dynamo.guards)["profile_guard_manager"] = lambda *_: 0.0
    fork = multiprocessing.get_context("fork")
    labels = {}
    for name, text in texts.items():
        here, there = fork.Pipe()
        process = fork.Process(target=_child, args=(text, there))
        process.start()
        there.close()
        try:
            labels[name] = here.recv() if here.poll(SECONDS) else {"error": "no answer in time"}
        except EOFError:
            labels[name] = {"error": "died"}
        process.kill()
        process.join()
    return labels


def main(names: list[str]) -> int:
    import torch

    wanted = set(names)
    texts = {n: text for n, text in programs().items() if not wanted or wanted & {n, n.split("/")[0]}}
    labels = label(texts)
    for name, answer in labels.items():
        if "error" in answer:
            print(f"{name}: {answer['error']}", file=sys.stderr)
    before = json.loads(EXPECTED.read_text(encoding="utf-8"))["programs"] if EXPECTED.exists() else {}
    known = {name: answer for name, answer in {**before, **labels}.items() if name in programs()}
    EXPECTED.write_text(json.dumps({"torch": torch.__version__, "programs": known}, indent=1) + "\n", encoding="utf-8")
    return int(any("error" in answer for answer in labels.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
