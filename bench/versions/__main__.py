"""Measures GraphMend with versions of torch: `make versions VERSIONS="2.10 2.12"`.

    python -m bench.versions VERSION [VERSION ...] [--only PART [PART ...] | --tests FILE [FILE ...]] [--again]

Writes the facts of each version, with which mends hold, `bench/results/torch-versions.json` and
`docs/torch-versions.md`, part by part. A run that was ended goes on where it was: what was measured is measured anew
only where a file changed that has a part in it, or with `--again`. The pages of the rewrites name the versions, too:
`make docs` writes them anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.versions import calls, environments, examples, models, page, progress, recompilations, suites
from graphmend.analysis.torch_facts.generator import generate
from graphmend.transforms import torch_versions

ABILITIES = Path(__file__).parent / "probes" / "abilities.py"
Measured = dict[str, Any]
Counts = dict[str, tuple[int, int]]
"""Of the tests that mend with a rewrite: how many passed, and how many there are."""


def _facts(python: str, _: str) -> Measured:
    """The two data files that torch's own files say."""
    for path in generate.write(generate.Tree(Path(progress.build(python).place)), calls.FOLDER):
        print(f"{path.name} written")
    return {}


def _calls(python: str, version: str) -> Measured:
    """The data file of what this torch does otherwise; the newest one is what others are held against."""
    return calls.write(python) if version != page.minors()[0] else {}


def _examples(python: str, version: str) -> Measured:
    return examples.measure(python, version, examples.of_rules())


def _patterns(python: str, version: str) -> Measured:
    texts = examples.patterns()
    if not texts:
        raise environments.MissingError(f"patterns: {examples.PATTERNS} is not there")
    return examples.measure(python, version, texts)


def _abilities(python: str, _: str) -> Measured:
    """What the runtime can do."""
    done = subprocess.run(
        [python, str(ABILITIES)], capture_output=True, text=True, check=True, env=suites.environment()
    )
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found


def _suite(name: str) -> Callable[[str, str], Measured]:
    def measure(python: str, version: str) -> Measured:
        outcome = suites.run(python, name)._asdict()
        if rewrites := outcome.pop("rewrites"):
            _hold(version, rewrites)
        return outcome

    return measure


PARTS: dict[str, Callable[[str, str], Measured]] = {
    "facts": _facts,
    "calls": _calls,
    "examples": _examples,
    "patterns": _patterns,
    "models": models.measure,
    "recompilations": recompilations.measure,
    "abilities": _abilities,
    **{name: _suite(name) for name in suites.SUITES},
}


def add(version: str, files: list[str]) -> None:
    """Measures files of tests of mends alone, for the rewrites that have no count with a version yet; what fails there
    counts against the others, too."""
    known = dict(torch_versions.measured().get(torch_versions.minor(version) or (0, 0), {}))
    found = suites.run(environments.python_with(version), "mends", files)
    new = joined(known, found.rewrites)
    changed = {name: of for name, of in new.items() if of != known.get(name)}
    print(f"torch {version}: {json.dumps(changed)}; failed: {found.failed}", flush=True)
    _hold(version, new)
    page.save(page.load())


def joined(known: Counts, found: Counts) -> Counts:
    """The counts of rewrites with those of some files added. The files may have had a part in what is known, so of a
    rewrite that both count neither tests nor failures are summed: the larger number of each is kept."""
    both = {**found, **known}
    for name in known.keys() & found.keys():
        tests = max(known[name][1], found[name][1])
        failures = max(all_ - passed for passed, all_ in (known[name], found[name]))
        both[name] = (tests - failures, tests)
    return dict(sorted(both.items()))


def _hold(version: str, rewrites: Counts) -> None:
    """Keeps with which mends a version's tests pass, where `transforms` reads it."""
    data = json.loads(torch_versions.DATA.read_text("utf-8")) if torch_versions.DATA.is_file() else {}
    data[version] = rewrites
    ordered = {key: data[key] for key in sorted(data, key=lambda text: torch_versions.minor(text) or (0, 0))}
    rows = ",\n".join(f' "{key}": {_lines(of)}' for key, of in ordered.items())
    torch_versions.DATA.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    torch_versions.measured.cache_clear()


def _lines(of: Counts) -> str:
    """A rewrite a line."""
    return "{\n" + ",\n".join(f'  "{name}": {json.dumps(list(count))}' for name, count in of.items()) + "\n }"


def measure(version: str, parts: list[str]) -> None:
    """Measures parts of a version anew, and writes the results after each."""
    python = environments.python_with(version)
    built = progress.build(python)
    for part in parts:
        begun = time.monotonic()
        found = PARTS[part](python, version)
        minutes = (time.monotonic() - begun) / 60
        print(f"torch {version}, {part}: {minutes:.1f} minutes", flush=True)
        results = page.load()  # another version may have been measured meanwhile
        row = results.setdefault(version, {})
        row.setdefault("cuda", page.UNMEASURED)
        made = {"torch": built.version, "date": datetime.date.today().isoformat()}
        row.setdefault("parts", {})[part] = {**made, **found}
        page.save(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="a minor version, such as 2.10")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    parser.add_argument("--again", action="store_true", help="also where nothing changed since it was measured")
    parser.add_argument(
        "--tests",
        nargs="+",
        metavar="FILE",
        help="measure only these files of tests/transforms, for mends without a count",
    )
    arguments = parser.parse_args()
    progress.again = arguments.again
    missing = False
    for version in arguments.versions:
        try:
            if arguments.tests:
                add(version, arguments.tests)
            else:
                measure(version, arguments.only)
        except environments.MissingError as error:
            print(error, file=sys.stderr)
            missing = True
    raise SystemExit(2 if missing else 0)


if __name__ == "__main__":
    main()
