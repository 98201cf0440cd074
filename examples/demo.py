"""Mends two models of the installed transformers package through the real server, and lets TorchDynamo confirm.

    python examples/demo.py [t5] [bart] [--device auto|cpu|cuda] [--backend NAME] [--keep FOLDER] [--diff]

The package is copied into a temporary folder that becomes the workspace. For each model an editor opens the modelling
file, shows the findings, has the server check the model with TorchDynamo, takes the first mend of each finding that has
one, saves, and has the model checked again. Meanwhile and afterwards the model runs apart from the server, with the
package as it was and as mended, and outputs, gradients and log records are compared.

Exit status: 0 if everything holds, 1 if something does not, 2 if the demo cannot run here.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import difflib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo_parts.editor import Document, Editor, Json, ServerError
from demo_parts.models import MODELS, TRANSFORMERS, Model
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

HERE = Path(__file__).resolve().parent
MEND = "Mend graph break: "
VERDICT = re.compile(r"(.*) \((confirmed|not seen|not reached) by [^()]*\)")
"""A diagnostic's message after a check."""


class Unable(Exception):
    """Why the demo cannot run here, in one line."""


@dataclass(frozen=True)
class Finding:
    """A diagnostic before mending, and what TorchDynamo says of it."""

    key: str
    code: str
    line: int
    message: str
    verdict: str

    @classmethod
    def of(cls, diagnostic: Json) -> Finding:
        found = VERDICT.fullmatch(diagnostic["message"])
        message, verdict = found.groups() if found else (diagnostic["message"], "")
        line = diagnostic["range"]["start"]["line"] + 1
        return cls(diagnostic["data"]["key"], diagnostic["code"], line, message, verdict)


@dataclass
class Story:
    """What became of one model."""

    model: Model
    original: str = ""
    mended: str = ""
    found: list[Finding] = field(default_factory=list)
    mends: dict[str, str] = field(default_factory=dict)
    """The titles of the mends that were made, by key of the finding."""
    left: list[Finding] = field(default_factory=list)
    """What is still found in the mended text."""
    before: Json = field(default_factory=dict)
    after: Json = field(default_factory=dict)
    """The answers of the server's checks."""
    runs: list[Json] = field(default_factory=list)
    """The comparison apart from the server, an object for each side of the model."""

    def outcome(self, finding: Finding) -> str:
        """What was done about a finding."""
        if finding.key in self.mends:
            return self.mends[finding.key]
        return "no mend" if any(finding.key == other.key for other in self.left) else "solved by another mend"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{' or '.join(MODELS)}; default: all")
    parser.add_argument("--device", default="auto", help="auto (CUDA where it works), cpu or cuda")
    parser.add_argument("--backend", default="aot_eager", help="aot_eager or eager; inductor rounds float16 otherwise")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="use this new folder as workspace, and leave it")
    parser.add_argument("--diff", action="store_true", help="show what the mends change")
    args = parser.parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=120)
    if unknown := [name for name in args.models if name not in MODELS]:
        parser.error(f"no such model: {', '.join(unknown)}")
    try:
        with workspace(args.keep) as folder:
            stories = asyncio.run(tell(args, folder, console))
    except (Unable, ServerError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    return judge(stories, console)


# the workspace


@contextlib.contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """A folder with a copy of the package and a configuration that says how the models are built."""
    package = installed_transformers()
    with contextlib.ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmend-demo-"))).resolve()
        else:
            folder = keep.resolve()
            if folder.exists():
                raise Unable(f"{folder} is there already")
            folder.mkdir(parents=True)
        shutil.copytree(package, folder / "transformers")
        (folder / "pyproject.toml").write_text("\n".join(map(declaration, MODELS.values())))
        yield folder


def installed_transformers() -> Path:
    """The folder of the transformers package; nothing is imported."""
    for name in ("torch", "transformers"):
        if importlib.util.find_spec(name) is None:
            raise Unable(f"{name} is not installed in {sys.prefix}")
    version = importlib.metadata.version("transformers")
    if version != TRANSFORMERS:
        raise Unable(f"the figures hold for transformers {TRANSFORMERS}, and {version} is installed")
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise Unable("transformers is installed, but not as files in a folder")
    return Path(spec.origin).parent


def declaration(model: Model) -> str:
    """A target of the workspace; JSON strings are TOML strings."""
    entries = {"target": f"{model.file}:{model.name}", "init": model.init, "inputs": model.inputs}
    return "[[tool.graphmend.targets]]\n" + "".join(f"{key} = {json.dumps(text)}\n" for key, text in entries.items())


# the story


async def tell(args: argparse.Namespace, folder: Path, console: Console) -> list[Story]:
    names = list(dict.fromkeys(args.models or MODELS))
    stories = [Story(MODELS[name]) for name in names]
    runs = ("demo_parts.runs", str(folder / "outcomes.pt"), args.device, args.backend, *names)
    as_it_was = asyncio.ensure_future(python("-m", *runs, "keep"))
    settings = {"interpreter": sys.executable, "verify": {"device": args.device, "timeoutSeconds": 300}}
    try:
        async with Editor.started(folder, {"trusted": True, "settings": settings}, folder / "server.log") as editor:
            console.print(f"[bold]{editor.server}[/] over standard input and output\n")
            for story in stories:
                await mend(editor, story, folder, console)
                show(story, console, diff=args.diff)
        with console.status("comparing outputs, gradients and messages"):
            await as_it_was
            compared = json.loads(await python("-m", *runs, "compare", first_on_path=folder))
    finally:
        as_it_was.cancel()
    for name, story in zip(names, stories, strict=True):
        story.runs = compared[name]
    return stories


async def python(*command: str, first_on_path: Path | None = None) -> str:
    """What a Python process prints."""
    environment = dict(os.environ)
    if first_on_path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(first_on_path), environment.get("PYTHONPATH", "")])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=HERE,
        env=environment,
    )
    try:
        out, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        raise Unable(f"python {' '.join(command)} failed:\n{errors.decode(errors='replace')}")
    return out.decode().strip()


async def mend(editor: Editor, story: Story, folder: Path, console: Console) -> None:
    """Opens, checks, mends, saves and checks again."""
    document = editor.open(folder / story.model.file)
    story.original = document.text
    with console.status(f"checking {story.model.name} as it is"):
        story.before = await verified(editor, document)
        story.found = await findings(editor, document)
    with console.status(f"mending {document.path.name}"):
        story.mends = await mend_all(editor, document)
        story.mended = document.text
        editor.save(document)
    with console.status(f"checking {story.model.name} mended"):
        story.after = await verified(editor, document)
        story.left = await findings(editor, document)


async def findings(editor: Editor, document: Document) -> list[Finding]:
    return [Finding.of(diagnostic) for diagnostic in await editor.diagnostics(document)]


async def verified(editor: Editor, document: Document) -> Json:
    """What the server's check says of a file and its one declared target, and the seconds it took."""
    begin = time.perf_counter()
    outcome: Json = await editor.execute("graphmend.verify", document.uri)
    targets = outcome.get("targets", ())
    problem = (
        outcome["message"] if outcome["status"] != "checked" else next((t["problem"] for t in targets), "no target")
    )
    if problem is not None:
        raise Unable(f"{document.path.name} was not checked: {problem}")
    check = {name: outcome[name] for name in ("breaks", "device", "torch")}
    return {**check, "graphs": targets[0]["graphs"], "seconds": time.perf_counter() - begin}


async def mend_all(editor: Editor, document: Document) -> dict[str, str]:
    """Makes the first mend of each finding that has one; answers with their titles. One after the other: an edit moves
    the other findings, and may solve some."""
    made: dict[str, str] = {}
    tried: set[str] = set()
    while True:
        waiting = [d for d in await editor.diagnostics(document) if d["data"]["key"] not in tried]
        if not waiting:
            return made
        key = waiting[0]["data"]["key"]
        tried.add(key)
        for action in await editor.actions(document, waiting[0]["range"]):
            if action["title"].startswith(MEND) and key in (d["data"]["key"] for d in action["diagnostics"]):
                editor.apply((await editor.resolve(action))["edit"])
                made[key] = action["title"].removeprefix(MEND)
                break


# what is shown


def show(story: Story, console: Console, *, diff: bool) -> None:
    """The findings of a file, what TorchDynamo says of each, and the mend that was made."""
    table = titled(f"{story.model.file}: {len(story.found)} findings", "line", "code", "finding", "TorchDynamo", "mend")
    for finding in story.found:
        style = "bold" if finding.verdict == "confirmed" else "" if finding.key in story.mends else "dim"
        message = finding.message.removesuffix(": the graph breaks here")
        cells = (str(finding.line), finding.code, message, finding.verdict, story.outcome(finding))
        table.add_row(*cells, style=style)
    console.print(table)
    if diff:
        lines = [*difflib.unified_diff(story.original.splitlines(), story.mended.splitlines(), n=1, lineterm="")]
        console.print(Syntax("\n".join(lines[2:]), "diff", background_color="default", word_wrap=True))
    console.print()


def titled(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def results(stories: list[Story]) -> Table:
    """A column for each way through a model."""
    columns = [(story, run) for story in stories for run in story.runs]
    table = titled("Before -> after", "", *(f"{story.model.name}\n{run['side']}" for story, run in columns))

    def row(heading: str, cell: Callable[[Story, Json], str]) -> None:
        table.add_row(heading, *(cell(story, run) for story, run in columns))

    row("precision", lambda story, run: story.model.dtype)
    row("device, torch", lambda story, run: f"{story.after['device']}, {story.after['torch']}")
    row("graph breaks", lambda story, run: f"{breaks(story.before)} -> {breaks(story.after)}")
    row("server's check, seconds", lambda s, run: f"{s.before['seconds']:.1f} -> {s.after['seconds']:.1f}")
    row("graphs, counted apart", lambda story, run: "{} -> {}".format(*run["graphs"]))
    row("outputs + gradients", lambda story, run: f"{run['values']} + {run['gradients']}")
    row("mended, eager", lambda story, run: gap(run["eager_difference"]))
    row("mended, compiled", lambda story, run: gap(run["compiled_difference"]))
    row("messages, compiled", lambda story, run: f"{len(run['logged'])} -> {len(run['logged_compiled'])}")
    return table


def gap(difference: float) -> str:
    return "equal to the bit" if difference == 0.0 else f"differ by {difference:.1e}"


# what must hold


def breaks(check: Json) -> int:
    """As the GraphMend paper counts: FX graphs minus one."""
    return max(int(check["graphs"]) - 1, 0)


def claims(story: Story) -> Iterator[tuple[str, bool]]:
    """Everything that the demo promises of a model, and whether it holds."""
    model, before, after = story.model, breaks(story.before), breaks(story.after)
    confirmed = [finding for finding in story.found if finding.verdict == "confirmed"]
    yield f"{model.breaks} graph breaks before mending (there are {before})", before == model.breaks
    yield f"no graph break after mending (there are {after})", after == 0 and not story.after["breaks"]
    yield (
        "reading found every place in the file where TorchDynamo broke",
        not any(finding.code.startswith("GM9") for finding in story.found),
    )
    yield (
        "each finding that TorchDynamo confirmed is gone",
        bool(confirmed) and not any(finding.key == other.key for finding in confirmed for other in story.left),
    )
    for run in story.runs:
        for text, holds in side_claims(model, run):
            yield f"{run['side']}: {text}", holds


def side_claims(model: Model, run: Json) -> Iterator[tuple[str, bool]]:
    logged: list[str] = run["logged"]
    yield "the run goes this way, with finite outputs", run["reached"] and run["finite"]
    yield "outputs and gradients are equal to the bit, eagerly", run["eager_difference"] == 0.0
    yield "outputs and gradients are equal, compiled", run["compiled_equal"]
    yield "the compiled model was several graphs and is one", run["graphs"][0] > run["graphs"][1] == 1
    yield "the original logs its message", any(model.logs in line for line in logged)
    yield (
        "the mended model logs the same, eagerly and compiled",
        logged == run["logged_eager"] == run["logged_compiled"],
    )


def judge(stories: list[Story], console: Console) -> int:
    """Prints what became of it all; 0 if everything holds."""
    console.print(results(stories))
    judged = [(f"{story.model.name}: {text}", holds) for story in stories for text, holds in claims(story)]
    failed = [text for text, holds in judged if not holds]
    for text in failed:
        console.print(f"[bold red]does not hold:[/] {text}")
    if not failed:
        console.print(f"[bold green]All {len(judged)} claims hold.[/]")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
