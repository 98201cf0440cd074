"""T5 and BART of the transformers that a torch's interpreter has: what `verify` reports, held against its log."""

from __future__ import annotations

import subprocess
from typing import Any

from bench.versions import examples
from bench.versions.environments import MissingError

_SIZES = {
    "T5": "d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0",
    "Bart": "d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, "
    "encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=32",
}
_MODES = {"eval": "eval()", "train": "train()", "half": "eval().half()"}
_PROGRAM = """\
# with transformers {version}
import torch
from transformers import {name}Config, {name}ForConditionalGeneration

torch.manual_seed(0)
model = {name}ForConditionalGeneration({name}Config(vocab_size=64, {sizes})).{mode}
case = torch.compile(model)


def example_inputs():
    tokens = torch.arange(16).reshape(2, 8) + 4
    return [(tokens, torch.ones_like(tokens), tokens[:, :4])]
"""


def programs(version: str) -> dict[str, str]:
    """The texts of the programs, by name: each model in each mode and precision that decides what breaks."""
    return {
        f"{name.lower()}_{short}": _PROGRAM.format(version=version, name=name, sizes=sizes, mode=mode)
        for name, sizes in _SIZES.items()
        for short, mode in _MODES.items()
    }


def measure(python: str, _: str) -> dict[str, Any]:
    """How many of the models break at exactly the places that the log tells of, whichever file those are in."""
    code = "import transformers; print(transformers.__version__)"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise MissingError(f"models: {python} has no transformers that can be imported")
    version = asked.stdout.split()[-1]
    _, found = examples.observe(python, programs(version))
    log = {name: program.log for name, program in found.items()}
    seen = {name: program.seen for name, program in found.items()}
    return {
        "transformers": version,
        "verify": examples.agreement(log, seen)._asdict(),
        "places": len({place for each in log.values() for place in each}),
    }
