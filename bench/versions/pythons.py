"""The tests without torch on every Python that is here: `make test-pythons`.

    python -m bench.versions.pythons VERSION [VERSION ...]

Each version gets an environment of its own beside those of the versions of torch; a version that is not here is
skipped, and named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.versions.environments import ROOT, folder
from bench.versions.suites import environment

_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def interpreter(version: str) -> str | None:
    """A Python of a minor version: on the path, or where pyenv and uv keep theirs."""
    homes = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"]
    homes.append(Path.home() / ".local" / "share" / "uv" / "python")
    found = [path for home in homes for path in sorted(home.glob(f"*{version}.*/bin/python{version}"))]
    candidates = [shutil.which(f"python{version}"), *map(str, reversed(found))]
    return next((python for python in candidates if python and _is(python, version)), None)


def _is(python: str, version: str) -> bool:
    """Whether a program is that Python: pyenv's stand-ins are programs that only say what is missing."""
    try:
        done = subprocess.run(
            [python, "-c", _VERSION],
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def run(python: str, version: str) -> int:
    """The exit status of the tests; an environment is made where there is none."""
    place = folder() / f"python-{version}"
    own = place / "bin" / "python"
    if not own.is_file():
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
    # asked each time: it is quick where all is there, ends what was broken off, and follows `pyproject.toml`
    install = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--editable", f"{ROOT}[dev]"], check=True)
    command = [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not torch and not build and not many"]
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


def main() -> None:
    failed = []
    for version in sys.argv[1:]:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: skipped, it is not on this machine", flush=True)
            continue
        status = run(python, version)
        print(f"Python {version}: {'passed' if status == 0 else f'failed with status {status}'}", flush=True)
        failed += [version] if status else []
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
