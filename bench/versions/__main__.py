"""Measures GraphMend with versions of torch: `make versions VERSIONS="2.10 2.12"`.

    python -m bench.versions VERSION [VERSION ...] [--only PART [PART ...]]

Writes the facts of each version, with which mends hold, `bench/results/torch-versions.json` and
`docs/torch-versions.md`. The pages of the rewrites name those versions: `make docs` writes them anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.versions import calls, environments, examples, page, suites
from graphmend.analysis.torch_facts.generator import generate
from graphmend.transforms import torch_versions

PARTS = ("facts", "calls", "examples", "abilities", *suites.SUITES)
ABILITIES = Path(__file__).with_name("probe_runtime.py")
_STATE = "import torch, sys; print(torch.__version__, torch.__file__, torch.cuda.is_available())"


def measure(version: str, parts: list[str], row: dict[str, Any]) -> dict[str, Any]:
    """A version's row with the parts measured anew."""
    python = environments.python_with(version)
    stated, place, cuda = subprocess.run(
        [python, "-c", _STATE], capture_output=True, text=True, check=True
    ).stdout.split()
    row = {**row, "torch": stated, "date": datetime.date.today().isoformat()}
    if "facts" in parts:
        for path in generate.write(generate.Tree(Path(place).parents[1]), calls.FOLDER):
            print(f"{path.name} written")
    if "calls" in parts:
        data = calls.write(python) if version != page.minors()[0] else dict.fromkeys(("refused", "traced", "forms"), ())
        row["calls"] = [len(data["refused"]), data.get("measured", 0), len(data["traced"]) + len(data["forms"])]
    if "examples" in parts:
        row["self-test"], checked, verified = examples.measure(python, version)
        row["check"], row["verify"] = checked._asdict(), verified._asdict()
    if "abilities" in parts:
        done = subprocess.run(
            [python, str(ABILITIES)], capture_output=True, text=True, check=True, env=suites.environment()
        )
        row["runtime"] = json.loads(done.stdout.splitlines()[-1])
    for suite in (name for name in suites.SUITES if name in parts):
        outcome = suites.run(python, suite)._asdict()
        if rewrites := outcome.pop("rewrites"):
            _hold(version, rewrites)
        row.setdefault("suites", {})[suite] = outcome
    if cuda != "True":
        row["cuda"] = page.UNMEASURED
    return row


def _hold(version: str, rewrites: dict[str, tuple[int, int]]) -> None:
    """Keeps with which mends a version's tests pass, where `transforms` reads it."""
    data = json.loads(torch_versions.DATA.read_text("utf-8")) if torch_versions.DATA.is_file() else {}
    data[version] = rewrites
    ordered = {key: data[key] for key in sorted(data, key=lambda text: torch_versions.minor(text) or (0, 0))}
    rows = ",\n".join(f' "{key}": {_lines(of)}' for key, of in ordered.items())
    torch_versions.DATA.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    torch_versions.measured.cache_clear()


def _lines(of: dict[str, tuple[int, int]]) -> str:
    """A rewrite a line."""
    return "{\n" + ",\n".join(f'  "{name}": {json.dumps(list(count))}' for name, count in of.items()) + "\n }"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="a minor version, such as 2.10")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure anew")
    arguments = parser.parse_args()
    missing = False
    for version in arguments.versions:
        try:
            row = measure(version, arguments.only, page.load().get(version, {}))
        except environments.MissingError as error:
            print(error, file=sys.stderr)
            missing = True
            continue
        results = {**page.load(), version: row}  # another version may have been measured meanwhile
        page.save(results)
        shown = {key: value for key, value in results[version].items() if key != "suites"}
        print(json.dumps(shown, indent=1))
    raise SystemExit(2 if missing else 0)


if __name__ == "__main__":
    main()
