"""The helpers beside these tests are imported by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from whole_programs import run, run_warm, warm

__all__ = ["run", "run_warm", "warm"]
