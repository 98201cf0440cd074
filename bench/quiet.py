"""How quiet the analysis is on code that nothing compiles.

    python bench/quiet.py [SITE]

SITE is a folder of installed packages with transformers in it; by default this interpreter's. Trainers, training
scripts, data, generation and pre-processing code of transformers are full of `.item()` and `print`, and none of it is
compiled: every finding there is a false alarm, unless a `forward` of a module calls it. Prints each finding, and how
many there are in 100,000 lines.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from graphmend.analysis.check import check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.workspace import files
from graphmend.workspace.module_loader import ModuleLoader

#: folders of transformers that hold networks and their losses
NETWORKS = ("models", "integrations", "loss")
#: what stands beside a network and is not one
BESIDE = tuple(f"{job}_" for job in ("configuration", "convert", "feature_extraction", "tokenization"))
BESIDE += tuple(f"{job}_" for job in ("processing", "image_processing", "video_processing"))
GOAL = 5


def uncompiled(package: Path) -> Iterator[Path]:
    """The files of transformers outside its networks, and the pre-processing and conversion beside these."""
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in NETWORKS or path.name.startswith(BESIDE):
            yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", nargs="?", type=Path, default=Path(sysconfig.get_path("purelib")))
    site = parser.parse_args().site.resolve()
    project = Project(ModuleLoader(site))
    lines, found, started = 0, Counter[str](), time.process_time()
    for path in uncompiled(site / "transformers"):
        text = files.read(path).text
        lines += text.count("\n")
        for finding in check(Source(text, str(path)), project).findings:
            found[finding.code] += 1
            print(f"{path.relative_to(site)}:{finding.span.line} {finding.code} {finding.certainty} {finding.message}")
            print(f"    {finding.function}: {'; '.join(finding.evidence)}")
    total = sum(found.values())
    share = total * 100_000 / max(lines, 1)
    print(f"{total} findings in {lines:,} lines: {share:.1f} in 100,000 (goal: at most {GOAL})  {dict(found)}")
    print(f"{time.process_time() - started:.1f} s of CPU")


if __name__ == "__main__":
    main()
