"""The documentation of the rewrites, made from their docstrings: `python -m graphmend.transforms.document
FOLDER` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from graphmend.transforms.catalogue import CATALOGUE, Rewrite
from graphmend.transforms.fix import DIFFERENCES
from graphmend.transforms.questions import QUESTIONS
from graphmend.transforms.torch_versions import stated

HEADINGS = ("Before", "After", "Legal when", "Differs in")


def documented() -> dict[str, Rewrite]:
    """Every rewrite of the catalogue by its file's name."""
    return {r.name: r for _, rewrites in CATALOGUE for r in rewrites}


def sections(rewrite: Rewrite) -> tuple[str, dict[str, str]]:
    """The first sentences of a rewrite's docstring, and its sections by heading."""
    lines = (sys.modules[rewrite.module].__doc__ or "").strip().splitlines()
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in lines:
        if line.removesuffix(":") in HEADINGS and line.endswith(":"):
            heading = line.removesuffix(":")
            found[heading] = []
        else:
            found[heading].append(line.removeprefix("    ") if heading else line)
    return "\n".join(found.pop("")).strip(), {h: "\n".join(text).strip("\n") for h, text in found.items()}


def page(name: str, rewrite: Rewrite) -> str:
    """A rewrite's page."""
    summary, parts = sections(rewrite)
    codes = [code for code, rewrites in CATALOGUE if rewrite in rewrites]
    asks = f" Asks about {', '.join(rewrite.asks)}." if rewrite.asks else ""
    text = [f"# {name}", "", summary, "", f"Answers {', '.join(codes)}.{asks}", ""]
    text += [f"[Held to](../torch-versions.md) what the original does: {stated(name)}.", ""]
    for heading in HEADINGS:
        body = parts[heading]
        text += [f"## {heading}", "", *(["```python", body, "```"] if heading in ("Before", "After") else [body]), ""]
    return "\n".join(text)


def pages() -> dict[str, str]:
    """File names and texts of the whole folder."""
    rewrites = documented()
    made = {f"{name}.md": page(name, rewrite) for name, rewrite in sorted(rewrites.items())}
    rows = [f"| [{name}]({name}.md) | {_first_line(rewrites[name])} |" for name in sorted(rewrites)]
    lines = ["# Rewrites", "", "| rewrite | does |", "|---|---|", *rows, "", *_questions(), "", *_differences(), ""]
    made["README.md"] = "\n".join(lines)
    return made


def _questions() -> list[str]:
    """Which rewrite asks which question."""
    rewrites = sorted(documented().items())
    lines = ["## What each one asks", ""]
    lines += ["A mend is safe where every answer is a proof, unsafe where what is not known is named, and refused"]
    lines += ["where an answer is no. A rewrite asks nothing that it does not declare.", ""]
    lines += ["| question | asks |", "|---|---|"]
    lines += [f"| {question} | {asks} |" for question, asks in QUESTIONS.items()]
    lines += ["", "| rewrite | " + " | ".join(QUESTIONS) + " |", "|---|" + ":-:|" * len(QUESTIONS)]
    for name, rewrite in rewrites:
        marks = ["x" if question in rewrite.asks else " " for question in QUESTIONS]
        lines.append(f"| [{name}]({name}.md) | {' | '.join(marks)} |")
    return lines


def _differences() -> list[str]:
    """What the kinds of differences mean."""
    lines = ["## Kinds of differences", ""]
    lines += ["An unsafe mend names each way in which the program may differ, as one of these kinds. It counts as safe"]
    lines += ["where the setting [`accept`](../configuration.md#accept) holds all of its kinds.", ""]
    lines += ["| kind | means |", "|---|---|"]
    return [*lines, *(f"| {kind} | {means} |" for kind, means in DIFFERENCES.items())]


def _first_line(rewrite: Rewrite) -> str:
    return " ".join(sections(rewrite)[0].split("\n\n")[0].split())


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (folder / file).write_text(text, encoding="utf-8")
