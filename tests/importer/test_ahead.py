"""What is mended before a program imports it is what would have been made when it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphmend.importer.ahead import Ahead, ProgramGone
from graphmend.importer.next_imports import NextImports
from graphmend.importer.outcome import Outcome
from graphmend.importer.text_mender import Surroundings, TextMender
from graphmend.importer.upcoming import AsTraced, InImportOrder, Program

PACKAGE = {
    "__init__": """from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lazy import Late
    from .never import anything


def __getattr__(name):
    from importlib import import_module

    return getattr(import_module(".lazy", __name__), name)
""",
    "first": """import torch
from pkg.helper import note
from . import later


@torch.compile
def step(x: torch.Tensor):
    print(x.sum())
    return note(x.sum())
""",
    "helper": """def note(value):
    if value > 0:
        value = value + 1
    else:
        value = value - 1
    return value
""",
    "later": """import torch

try:
    from .last import shown
except ImportError:
    shown = None


@torch.compile
def turn(x: torch.Tensor):
    y = shown(x)
    return later_still(y)


def later_still(x: torch.Tensor):
    print("mean", x.mean())
    return x
""",
    "last": """import torch


@torch.compile
def shown(x: torch.Tensor):
    if x.sum() > 0:
        x = x + 1
    return x
""",
    "lazy": "from .last import shown\n\n\nclass Late:\n    pass\n",
    "never": "anything = 1\n",
}
SCRIPT = "import torch\nfrom pkg import first\nfrom pkg import Late\n"
ORDER = ["__init__", "first", "helper", "later", "last", "lazy"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        file = tmp_path / "pkg" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return tmp_path / "pkg"


class Running:
    """What a program that imports modules knows of their texts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts: dict[str, str] = {}
        self.around = Surroundings((str(folder.parent),), "2.13.0")

    def now(self, path: str) -> str | None:
        return self.texts.get(path) or self.original(path)

    def original(self, path: str) -> str:
        return Path(path).read_text()

    def imports(self, name: str, mend: Callable[..., tuple[Outcome, object]]) -> tuple[Outcome, object]:
        path = str(self.folder / f"{name}.py")
        made = mend(self.now(path), path, self, self.around)
        if made[0].text is not None:
            self.texts[path] = made[0].text
        self.texts |= {other: mended.text for other, mended in made[0].elsewhere.items()}
        if made[0].code is not None:
            code = made[0].code.code(self.original(path))
            assert code is not None
            assert code.co_filename == path
        elsewhere = {other: mended._replace(code=None) for other, mended in made[0].elsewhere.items()}
        return made[0]._replace(code=None, elsewhere=elsewhere), made[1]


def _ahead(folder: Path, kept: Callable[..., bool] = lambda *_: False) -> Ahead:
    return Ahead(TextMender(unsafe=True), _within(folder), kept, lambda *_: None, _upcoming(folder, SCRIPT))


def _within(folder: Path) -> Callable[[str], bool]:
    return lambda path: Path(path).parent == folder


def _upcoming(folder: Path, script: str | None = None, kind: type = InImportOrder) -> Any:
    path = str(folder.parent / ("script.py" if kind is InImportOrder else "other/script.py"))
    return kind(Program(_within(folder), None if script is None else (script, path)))


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are mended from now on."""
    made: list[str] = []
    mend = TextMender.mend

    def counted(self: TextMender, text: str, path: str, *more: Any) -> tuple[Outcome, Mapping[str, str]]:
        made.append(path)
        return mend(self, text, path, *more)

    monkeypatch.setattr(TextMender, "mend", counted)
    return made


@pytest.mark.parametrize("order", [ORDER, ORDER[:2] + ORDER[3:] + ORDER[2:3], ORDER[:1] + ORDER[:0:-1]])
@pytest.mark.parametrize("steps", [(0, 9), (1, 1), (2, 0), (0, 1, 0, 2)])
def test_as_in_turn(folder: Path, order: list[str], steps: tuple[int, ...]) -> None:
    plain, quick = Running(folder), Running(folder)
    in_turn, ahead = TextMender(unsafe=True), _ahead(folder)
    for at, name in enumerate(order):
        assert quick.imports(name, ahead.mend) == plain.imports(name, in_turn.mend), name
        for _ in range(steps[at % len(steps)]):
            ahead.step()
    assert quick.texts == plain.texts
    assert "emit" in plain.texts[str(folder / "first.py")]
    assert "select" in plain.texts[str(folder / "last.py")]


def test_what_was_made_ahead_is_not_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, ahead = Running(folder), _ahead(folder)
    assert not ahead.step(), "nothing was asked for"
    program.imports("__init__", ahead.mend)
    while ahead.step():
        pass
    made = _counted(monkeypatch)
    outcomes = [program.imports(name, ahead.mend)[0] for name in ORDER[1:]]
    assert [len(outcome.mends) for outcome in outcomes] == [1, 0, 1, 0, 0]
    assert [Path(path).stem for outcome in outcomes for path in outcome.elsewhere] == ["helper", "last"]
    assert made == []


@pytest.mark.parametrize("is_there", [True, False], ids=["changed", "new"])
def test_a_file_that_is_written_meanwhile(folder: Path, is_there: bool) -> None:
    file = folder / "last.py"
    if not is_there:
        file.unlink()
    program, other, ahead = Running(folder), Running(folder), _ahead(folder)
    program.imports("__init__", ahead.mend)
    while ahead.step():
        pass
    file.write_text(PACKAGE["last"].replace("x + 1", "x.item()"))
    plain = TextMender(unsafe=True)
    for name in ("later", "last"):
        assert program.imports(name, ahead.mend) == other.imports(name, plain.mend)


def test_texts_that_run_before_anything_is_asked_for(folder: Path) -> None:
    program, ahead = Running(folder), _ahead(folder)
    ahead.told({str(folder / "first.py"): PACKAGE["first"].replace("print(", "int(")})
    assert program.imports("later", ahead.mend) == Running(folder).imports("later", TextMender(unsafe=True).mend)


def test_work_on_another_file_than_the_program_waits_for_is_dropped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, other, ahead = Running(folder), Running(folder), _ahead(folder)
    program.imports("__init__", ahead.mend)
    last = str(folder / "last.py")
    while ahead.step(lambda path: path != last):
        pass
    made = _counted(monkeypatch)
    program.imports("first", ahead.mend)
    assert [Path(path).stem for path in made] == ["first"]
    plain = TextMender(unsafe=True)
    other.imports("first", plain.mend)
    assert program.imports("later", ahead.mend) == other.imports("later", plain.mend)


def test_what_is_ready_is_handed_out_while_another_file_is_mended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, other, ahead = Running(folder), Running(folder), _ahead(folder)
    program.imports("__init__", ahead.mend)
    got: list[tuple[Outcome, object]] = []

    def waits(mended: str) -> bool:
        """The program imports the first files once the work on a later one has begun."""

        def ready(text: str, path: str, *_: object) -> tuple[Outcome, object]:
            found = ahead.ready(text, path, program.around, program.texts)
            assert found is not None, path
            return found

        if Path(mended).stem == "later" and not got:
            helper, first = str(folder / "helper.py"), str(folder / "first.py")
            assert ahead.ready(PACKAGE["first"], first, program.around, {helper: "def note(x): ..."}) is None
            for name in ("first", "helper"):
                assert ahead.ready("x = 1\n", str(folder / f"{name}.py"), program.around, {}) is None
                got.append(program.imports(name, ready))
        return False

    made = _counted(monkeypatch)
    while ahead.step(waits):
        pass
    plain = TextMender(unsafe=True)
    assert got == [other.imports(name, plain.mend) for name in ("first", "helper")]
    made.clear()
    assert [program.imports(name, ahead.mend) for name in ORDER[3:]] == [
        other.imports(name, plain.mend) for name in ORDER[3:]
    ]
    assert len(made) == len(ORDER[3:]), "nothing but by the other mender"


def test_a_program_that_is_gone_ends_the_work(folder: Path) -> None:
    program, ahead = Running(folder), _ahead(folder)
    program.imports("__init__", ahead.mend)

    def waits(_: str) -> bool:
        raise EOFError

    with pytest.raises(ProgramGone):
        list(iter(lambda: ahead.step(waits), False))


def test_what_is_kept_is_not_made(folder: Path) -> None:
    asked: list[str] = []

    def kept(text: str, path: str, _: object) -> bool:
        asked.append(Path(path).stem)
        return True

    program, ahead = Running(folder), _ahead(folder, kept)
    program.imports("__init__", ahead.mend)
    while ahead.step():
        pass
    assert asked == ["first", "helper", "later", "last", "lazy"]
    first = str(folder / "first.py")
    ahead.told({first: "x = 1\n"})
    assert program.imports("helper", ahead.mend)[0].text is None


@pytest.mark.parametrize("torch", ["2.13.0+cpu", "2.9.1"], ids=["as expected", "another torch"])
def test_before_anything_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch, torch: str) -> None:
    (folder.parent / "model.py").write_text("import torch, pkg\n\n\ndef build():\n    return pkg.Late()\n")
    script = "import torch\n\n\ndef main():\n    from model import build\n    import pkg.later\n"
    expected = Surroundings((str(folder.parent),), "2.13.1")
    ahead = Ahead(
        TextMender(unsafe=True),
        _within(folder),
        lambda *_: False,
        lambda *_: None,
        _upcoming(folder, script),
        expected,
    )
    made = _counted(monkeypatch)
    while ahead.step():
        pass
    assert {Path(path).stem for path in made} == {"__init__", "later", "last", "lazy"}
    made.clear()
    program, other, plain = Running(folder), Running(folder), TextMender(unsafe=True)
    program.around = other.around = Surroundings(expected.search, torch)
    for name in ("__init__", "later", "lazy"):
        assert program.imports(name, ahead.mend) == other.imports(name, plain.mend), name
    assert len(made) == (3 if torch.startswith("2.13") else 6), "by the other mender, and by this where it must be"


def test_imports_in_order(folder: Path) -> None:
    mender = TextMender(unsafe=False)
    mender.mend("", "none.py", Running(folder), Running(folder).around)
    follow = NextImports(mender.project, lambda path: Path(path).parent == folder)

    def found(text: str) -> list[str]:
        paths = follow.of(text, str(folder / "some.py"))
        return list(dict.fromkeys(Path(path).stem for path in paths))

    assert found(SCRIPT) == ["__init__", "first", "lazy"]
    assert found("import pkg.first, pkg.last as l") == ["__init__", "first", "last"]
    assert found("from . import later\nfrom .last import *") == ["__init__", "later", "last"]
    assert found("def f():\n    from . import later\n") == []
    assert found("import typing as t\nif t.TYPE_CHECKING:\n    from . import later\nelse:\n    from . import last") == [
        "__init__", "last",
    ]  # fmt: skip
    assert found("import numpy, json, missing.part\nfrom missing import x\nfrom ... import y") == []
    assert found("import (") == []
    inside = "import pkg as p\n\n\ndef f(x):\n    from . import later\n    return p.Late, x.Late\n"
    paths = follow.later(inside, str(folder / "some.py"))
    assert list(dict.fromkeys(Path(path).stem for path in paths)) == ["__init__", "later", "lazy"]


def test_in_the_order_of_what_was_made_everything_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program imports in another order than was foreseen, and not all of it, and asks for everything at once."""
    ahead, program = _ahead(folder), Running(folder)
    made = _counted(monkeypatch)
    ahead.expect(str(folder / "last.py"), program.around)
    while ahead.step():
        pass
    names = [Path(path).stem for path in made]
    assert names[0] == "last"
    assert set(names) == {*ORDER}
    made.clear()
    wanted = [folder / f"{name}.py" for name in ("helper", "first", "last")]
    for path in sorted(map(str, wanted), key=ahead.order().index):
        program.imports(Path(path).stem, ahead.mend)
    assert made == [], "nothing is made twice, though `later` was mended in between and is not loaded"
    assert "select" in program.texts[str(folder / "last.py")]


def test_what_waits_is_kept(folder: Path) -> None:
    kept: list[tuple[str, str | None]] = []

    def keep(text: str, path: str, outcome: Outcome, read: Mapping[str, str]) -> None:
        kept.append((Path(path).stem, outcome.text))

    mender = TextMender(unsafe=True)
    ahead = Ahead(mender, _within(folder), lambda *_: False, keep, _upcoming(folder))
    ahead.expect(str(folder / "last.py"), Running(folder).around)
    assert ahead.step()
    ahead.keep_waiting()
    ((name, text),) = kept
    assert name == "last"
    assert text is not None
    assert "select" in text


def test_as_traced_what_the_program_names_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upcoming = _upcoming(folder, "from pkg import first\n\n\ndef main():\n    import pkg.lazy\n", AsTraced)
    running = Running(folder)
    ahead = Ahead(TextMender(unsafe=True), _within(folder), lambda *_: False, lambda *_: None, upcoming, running.around)
    made = _counted(monkeypatch)
    while ahead.step():
        pass
    assert [Path(path).stem for path in made] == ["first", "helper", "lazy"], "each with what it was read with"
    ahead.expect(str(folder / "__init__.py"), running.around, by_program=False)
    assert not ahead.step(), "perhaps nothing that is compiled comes to it"
    ahead.expect(str(folder / "later.py"), running.around, by_program=True)
    assert ahead.step()
    made.clear()
    plain, other = TextMender(unsafe=True), Running(folder)
    for name in ("first", "helper", "later"):
        assert running.imports(name, ahead.mend) == other.imports(name, plain.mend), name
    assert [Path(path).stem for path in made].count("first") == 1, "not but by the other mender"
    assert ahead.step(), "something is compiled by now"


def test_as_traced_nothing_is_guessed_where_what_is_named_is_kept(folder: Path) -> None:
    asked: list[str] = []

    def kept(text: str, path: str, _: object) -> bool:
        asked.append(Path(path).stem)
        return True

    upcoming = _upcoming(folder, "from pkg import first\n", AsTraced)
    ahead = Ahead(TextMender(unsafe=True), _within(folder), kept, lambda *_: None, upcoming, Running(folder).around)
    while ahead.step():
        pass
    assert asked == ["first"]


def test_a_package_of_many_modules_that_loads_names_when_they_are_asked_for(tmp_path: Path) -> None:
    """As transformers does: type checkers alone see where a name is, behind several `import *`."""
    zoo = tmp_path / "zoo"
    lazily = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
    names = [f"other_{number}" for number in range(60)]
    for name in ("gpt_two", "gpt", *names):
        (zoo / name).mkdir(parents=True)
        (zoo / name / "__init__.py").write_text(f"{lazily}    from .config_{name} import *\n    from .model import *\n")
        (zoo / name / f"config_{name}.py").write_text("")
        (zoo / name / "model.py").write_text(f"class {name.title().replace('_', '')}Model:\n    pass\n")
    stars = "".join(f"    from .{name} import *\n" for name in (*names, "gpt", "gpt_two"))
    (zoo / "__init__.py").write_text(lazily + stars)

    mender = TextMender(unsafe=False)
    mender.mend("", "none.py", Running(zoo), Running(zoo).around)
    follow = NextImports(mender.project, lambda path: Path(path).is_relative_to(zoo))

    def defined(name: str) -> list[str]:
        paths = follow.definitions(f"from zoo import {name}\n", str(tmp_path / "some.py"))
        return [str(Path(path).relative_to(zoo)) for path in paths]

    assert defined("GptTwoModel") == ["gpt_two/model.py"]
    assert defined("GptModel") == ["gpt/model.py"]
    assert defined("Other7Model") == ["other_7/model.py"]
    before = len(mender.project.paths())
    assert defined("Unheard") == [], "the package alone knows"
    assert len(mender.project.paths()) == before, "and sixty modules are not read for a name that tells nothing"
