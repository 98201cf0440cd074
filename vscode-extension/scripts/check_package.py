"""Whether a package holds what the extension needs on a platform, and nothing else: `check_package.py TARGET VSIX`."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from bundle import PYTHONS, requirements_of

EXTENSION = Path(__file__).resolve().parent.parent
LARGEST = 30_000_000
NEEDED = (
    "dist/extension.js",
    "package.json",
    "media/icon.png",
    "bundled/start.py",
    "bundled/probe.py",
    "bundled/libs/graphmend/server/main.py",
    "bundled/libs/graphmend/dynamo/worker/main.py",
    "bundled/libs/graphmend/runtime/__init__.py",
)
#: What is never part of it: tests, sources, caches, what may hold something private.
STRAY = re.compile(
    r"(^|/)(tests?|__pycache__|node_modules|src|\.git|\.venv)/|\.(map|ts|vsix|pem|key)$|(^|/)\.(env|npmrc|pypirc)"
)

#: How a compiled module begins on each platform: the format and the processor that it is for.
MACHINES = {
    "linux-x64": (b"\x7fELF", 18, b"\x3e\x00"),
    "linux-arm64": (b"\x7fELF", 18, b"\xb7\x00"),
    "alpine-x64": (b"\x7fELF", 18, b"\x3e\x00"),
    "alpine-arm64": (b"\x7fELF", 18, b"\xb7\x00"),
    "darwin-x64": (b"\xcf\xfa\xed\xfe", 4, b"\x07\x00\x00\x01"),
    "darwin-arm64": (b"\xcf\xfa\xed\xfe", 4, b"\x0c\x00\x00\x01"),
    "win32-x64": (b"MZ", None, b"PE\x00\x00\x64\x86"),
    "win32-arm64": (b"MZ", None, b"PE\x00\x00\x64\xaa"),
}


def problems(target: str, path: Path) -> Iterator[str]:
    """What is wrong with a package, a sentence each."""
    with zipfile.ZipFile(path) as archive:
        names = {name.removeprefix("extension/") for name in archive.namelist() if name.startswith("extension/")}
        if path.stat().st_size > LARGEST:
            yield f"it has {path.stat().st_size:,} bytes, more than {LARGEST:,}"
        yield from (f"{name} is missing" for name in NEEDED if name not in names)
        lower = {name.lower() for name in names}
        for name in ("readme.md", "changelog.md", "license"):
            if not any(each.startswith(name) for each in lower):
                yield f"{name} is missing"
        yield from (f"{name} does not belong there" for name in sorted(names) if STRAY.search(name))
        yield from _platform(target, archive)
        yield from _manifest(archive)
        yield from _libraries(archive, names)
        yield from _native(target, archive, names)


def _platform(target: str, archive: zipfile.ZipFile) -> Iterator[str]:
    found = re.search(r'TargetPlatform="([^"]+)"', archive.read("extension.vsixmanifest").decode())
    said = found[1] if found else "universal"
    if said != target:
        yield f"it says that it is for {said}"


def _manifest(archive: zipfile.ZipFile) -> Iterator[str]:
    """The manifest is the one of the sources, and every file that it names is there."""
    given = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    packed = json.loads(archive.read("extension/package.json"))
    yield from (f"package.json has another {key}" for key in given if key in packed and packed[key] != given[key])
    pictures = [step["media"]["image"] for walk in packed["contributes"]["walkthroughs"] for step in walk["steps"]]
    for name in [packed["main"].removeprefix("./"), packed["icon"], *pictures]:
        if f"extension/{name}" not in archive.namelist():
            yield f"{name}, which package.json names, is missing"


def _libraries(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    """Every package that GraphMend requires is there; libcst alone is compiled, and lies apart."""
    metadata = [name for name in names if re.fullmatch(r"bundled/libs/graphmend-[^/]+\.dist-info/METADATA", name)]
    if len(metadata) != 1:
        yield "the bundled GraphMend has no metadata"
        return
    there = {_plain(found[1]) for n in names if (found := re.match(r"bundled/libs/([^/]+?)-[^/-]+\.dist-info/", n))}
    for need in requirements_of(archive.read(f"extension/{metadata[0]}").decode()):
        name = _plain(re.split(r"[^\w.-]", need, maxsplit=1)[0])
        if name != "libcst" and name not in there:
            yield f"{name}, which GraphMend needs, is missing"


def _native(target: str, archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    compiled = sorted(name for name in names if re.search(r"\.(so|pyd)$", name))
    if target == "universal":
        yield from (f"{name} is compiled" for name in compiled)
        return
    for python in PYTHONS:
        tag = python.replace(".", "")
        mine = [name for name in compiled if re.search(rf"libs/native/libcst/native\.(cpython-|cp){tag}\b", name)]
        if len(mine) != 1:
            yield f"libcst for Python {python} is missing"
    magic, at, machine = MACHINES[target]
    for name in compiled:
        with archive.open(f"extension/{name}") as file:
            head = file.read(4096)
        right = machine in head if at is None else head[at : at + len(machine)] == machine
        if not (head.startswith(magic) and right):
            yield f"{name} is not for {target}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(target: str, path: str) -> None:
    found = list(problems(target, Path(path)))
    if found:
        sys.exit("\n".join(f"check_package.py: {path}: {line}" for line in found))
    print(f"{path}: {Path(path).stat().st_size / 1e6:.1f} MB, complete for {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
