"""Where the packages are. Everything else about the distribution stands in pyproject.toml.

The rooms live at the top level; `src/graphmend/<room>` are links to them, so that tools that do not follow a
`package_dir` mapping (mypy, pyright) see real packages. A checkout without symbolic links (git's default on Windows)
has files there instead: then the rooms are taken from where they are.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOMS = ("analysis", "assistant", "cli", "dynamo", "importer", "model", "runtime", "server", "transforms", "workspace")

missing = [room for room in ROOMS if not Path("src", "graphmend", room, "__init__.py").is_file()]
packages = find_packages("src")
package_dir = {"": "src"}
for room in missing:
    package_dir[f"graphmend.{room}"] = room
    packages += [f"graphmend.{room}", *(f"graphmend.{room}.{name}" for name in find_packages(room))]

setup(packages=packages, package_dir=package_dir)
