"""The speed of models before and after mending: each arm in a process of its own, with an inductor cache of its own.

    python bench/speed.py [--models t5 longformer] [--size tiny|real] [--device cuda] [--write FILE]

`cold` is the first call, compilation included; `steady` the median of the calls behind it; `memory` the peak of the
process on the CPU and of the allocator on CUDA. On CUDA the arms are compiled with mode="reduce-overhead", and one more
call is profiled: `replays` of CUDA graphs, `kernels` that ran, calls that wait for the device (`syncs`). Weights are
random. Needs transformers 4.52.4 and, for the CPU, a C++ compiler. Timings mean little on a busy machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
_MENDED = ("-m", "graphmend", "run", "--unsafe", "--mend", "transformers", "--report")
_COLUMNS = ("graphs", "cold s", "steady ms", "memory MB")
_ON_CUDA = ("replays", "kernels", "syncs")


def t5(size: str) -> Any:
    import paper_models
    import torch
    import transformers

    if size == "tiny":
        return paper_models.t5()
    config = transformers.T5Config(decoder_start_token_id=0)  # its defaults are those of t5-small

    def ids() -> torch.Tensor:
        return torch.randint(5, 32000, (4, 128))

    inputs = [{"input_ids": ids(), "decoder_input_ids": ids()} for _ in range(2)]
    return transformers.T5ForConditionalGeneration(config), inputs


def phi3_longrope(size: str) -> Any:
    import paper_models
    import torch
    import transformers

    if size == "tiny":
        return paper_models.phi3_longrope()
    factors = {"short_factor": [1.0] * 48, "long_factor": [4.0] * 48}
    config = transformers.Phi3Config(  # its defaults are those of Phi-3-mini
        max_position_embeddings=131072, rope_scaling={"type": "longrope", **factors}, pad_token_id=0
    )
    places = torch.arange(128)[None]
    inputs = [{"input_ids": torch.randint(5, 32000, (1, 128)), "position_ids": places + at} for at in (0, 8192)]
    return transformers.Phi3ForCausalLM(config).to(torch.bfloat16), inputs


def longformer(size: str) -> Any:
    import paper_models
    import torch
    import transformers

    if size == "tiny":
        return paper_models.longformer()
    config = transformers.LongformerConfig(max_position_embeddings=4098)
    ids = [torch.randint(5, 30000, (1, 2048)) for _ in range(2)]
    inputs = [{"input_ids": one, "attention_mask": torch.ones_like(one)} for one in ids]
    return transformers.LongformerModel(config), inputs


def grounding_dino(size: str) -> Any:
    import paper_models
    import torch
    import transformers

    if size == "tiny":
        return paper_models.grounding_dino()
    config = transformers.GroundingDinoConfig(
        backbone_config=transformers.SwinConfig(out_indices=[2, 3, 4]), use_timm_backbone=False
    )
    ids = torch.tensor([[101, 1037, 4937, 1012, 1037, 3899, 1012, 102]])
    text = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    inputs = [{"pixel_values": torch.randn(1, 3, 800, 1200), **text} for _ in range(2)]
    return transformers.GroundingDinoForObjectDetection(config), inputs


MODELS: dict[str, Callable[[str], Any]] = {
    function.__name__: function for function in (t5, phi3_longrope, grounding_dino, longformer)
}


# One arm, in a process of its own


def measure(name: str, size: str, device: str, calls: int) -> dict[str, float]:
    import torch
    from torch._dynamo.utils import counters

    torch.manual_seed(0)
    model, inputs = MODELS[name](size)
    model = model.eval().to(device)
    inputs = [{key: value.to(device) for key, value in one.items()} for one in inputs]
    cuda = device.startswith("cuda")
    compiled = torch.compile(model, mode="reduce-overhead") if cuda else torch.compile(model)

    def call(index: int) -> float:
        began = time.perf_counter()
        compiled(**inputs[index % len(inputs)])
        if cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    with torch.no_grad():
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        cold = call(0)
        for index in range(1, 5):  # the second inputs compile too; a CUDA graph is recorded in the third call
            call(index)
        steady = statistics.median(call(index) for index in range(calls))
        row = {"graphs": counters["stats"]["unique_graphs"], "cold s": cold, "steady ms": steady * 1000}
        if not cuda:
            return row | {"memory MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
        row |= {"memory MB": torch.cuda.max_memory_allocated() / 2**20}
        return row | profiled(lambda: call(0))


def profiled(call: Callable[[], Any]) -> dict[str, int]:
    """What one call asks of a CUDA device."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
    torch.cuda.synchronize()
    events = seen.events()
    host = [event.name for event in events if event.device_type == DeviceType.CPU]
    device = [event.name for event in events if event.device_type == DeviceType.CUDA]
    waits = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
    return {
        "replays": sum(name.startswith("cudaGraphLaunch") for name in host),
        "kernels": sum(not name.startswith(("Memcpy", "Memset")) for name in device),
        "syncs": sum(name.startswith(waits) for name in host) - 1,  # the last one is ours
    }


# The table


def arm(name: str, mended: bool, options: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        report, result = Path(folder) / "report.json", Path(folder) / "result.json"
        cache = {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "inductor")}
        how = [*_MENDED, str(report)] if mended else []
        asked = [name, options.size, options.device, str(options.calls), str(result)]
        command = [sys.executable, *how, str(HERE), "--measure", *asked]
        subprocess.run(command, check=True, env=os.environ | cache, cwd=HERE.parent)
        row: dict[str, float] = json.loads(result.read_text())
        return row


def table(options: argparse.Namespace) -> str:
    import torch
    import transformers

    cuda = options.device.startswith("cuda")
    columns = [*_COLUMNS, *(_ON_CUDA if cuda else ())]
    device = torch.cuda.get_device_name(options.device) if cuda else f"{_processor()}, {os.cpu_count()} cores"
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    lines = [
        f"{device}; {versions}; {datetime.date.today()}; {options.size} sizes, random weights",
        "",
        f"| model | arm | {' | '.join(columns)} |",
        f"|---|---|{'---|' * len(columns)}",
    ]
    for name in options.models:
        for mended in (False, True):
            row = arm(name, mended, options)
            cells = [f"{row[c]:.1f}" if isinstance(row[c], float) else str(row[c]) for c in columns]
            lines.append(f"| {name} | {'mended' if mended else 'as it is'} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["t5", "phi3_longrope"])
    parser.add_argument("--size", choices=["tiny", "real"], default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, size, device, calls, file = options.measure
        Path(file).write_text(json.dumps(measure(name, size, device, int(calls))))
        return
    text = table(options)
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(text)


if __name__ == "__main__":
    main()
