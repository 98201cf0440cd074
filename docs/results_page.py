"""The page of measured results, made from the tables in `bench/results`."""

from __future__ import annotations

from pathlib import Path

_RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"

_TABLES = {
    "steady": "steady.md",
    "speed": "speed.md",
    "cuda": "speed_cuda.md",
    "turns": "turns.md",
    "startup": "startup.md",
}

_TEXT = """\
# Results

What mending gives whole models. The tables are kept in `bench/results`, by the commands that are named here;
`python docs/generate.py` makes this page from them.

## A stream of batches

A program that runs for long meets other token ids, other paddings and other floats in every batch. A graph that took
those of the first one for granted is compiled again, or breaks. `compiled` are the graphs compiled up to each batch,
`executed` those that its call ran, and a row is `equal` where every output is that of the same model run eagerly. Rows
are those of the paper's table, with random weights and small sizes; rows that share code are one measurement. No time
is measured here, so a busy machine makes no difference.

    python bench/steady.py --write bench/results/steady.md

{steady}
`graphmend verify --batches 8 TARGET` measures the same of a model of your own.

## Speed

What mending buys in time and memory, on TorchInductor: the rows of the paper's table (those that share code are one
measurement), and models of today. Random weights, in sizes where arithmetic rules and not what a call costs beside it.
For each repeat a plain and a mended process compile the same model, each with a cache of its own, and then make calls
in turns. Seconds are those of the processor, user and system, the C++ compiler's included, in one thread, because a
clock says little on a shared machine; what it said stands in the last column. `cold` is the first call, compilation
included, after the compiler has been used once; `all` adds the four calls after it, of which some compile again (for
these `graphs` has the number in all); `call` and `throughput` are those of the calls behind them, the latter with the
quartiles of the turns; `memory` is the peak of the process in them, and holds GraphMend itself in the mended one.
`outputs` are compared with those of the unmended model run eagerly: `as plain` means that compiled code differs from
them in its rounding, mended or not.

    python bench/speed.py

![Cold time saved and throughput gained, a bar for each model](images/speed.svg)

{speed}
The authors measured on CUDA, where each graph more is launched from Python while the device waits. On one core of a CPU
the same operations take nearly the same time in one graph as in four, and compiling them takes the same C++ compiler
as often: it is two thirds of cold time and more. What is saved is Python between the graphs, guards, and results
that are written out at a break.

Rows that get slower or fail, and why:

* `mixtral`, cold: after a break in a layer, TorchDynamo compiles the layer's code once and uses it for every layer
  (10 graphs of 237 operations, used 18 times). One graph holds each layer and each expert by itself, 413 operations. In
  return its calls are faster.
* `qwen2-audio`: its graph takes the token ids of a batch for known, so that it is compiled again for other ids (three
  graphs for two batches). With many batches that costs more than the breaks did: `--batches` of `graphmend verify`
  shows it, and such a model is better run as it is.
* `sam`: its break, a branch on the sum of a prompt, is not mended, so that it gains nothing.
* `grounding-dino-tiny`, cold and memory: 18 graphs become one of the whole model, which TorchInductor takes half as
  long again to compile, and holds more of meanwhile.
* `longformer-base-4096` and `clap-htsat-fused` are one graph in the first call. Another batch decides a size otherwise,
  which the graph took for another one's equal: it gives way to the program's own code, and what is compiled then breaks
  where it did. That compilation is lost (`all`).
* `smolvlm` and `qwen2.5-vl` keep half of their graphs: sizes that images decide go on through the vision model, where
  they must be known.
* `deformable-detr` is one graph in both arms, and no mend is in code that runs: what its calls took otherwise was
  measured beside other work.

### On CUDA

The same in larger sizes on a GPU, with CUDA graphs (`mode="reduce-overhead"`), on the clock. Ten rows compiled at once
on 16 cores, so that `cold` is disturbed by up to a quarter; where a row has two repeats, each arm was first once. Calls
were made by one row at a time. Memory is that of the device.

    python bench/speed.py --device cuda --size large --jobs 10 --turns 5 --keep bench/results/speed_cuda.json

![Cold time saved and throughput gained on a GPU, a bar for each model](images/speed_cuda.svg)

{cuda}
* What breaks cost there is the device that waits while Python goes from graph to graph. `bart-large-cnn` and
  `opus-mt-fr-en` (eight and seven graphs in half precision, 2 to 7 ms a call) gain 83 and 99 %, `layoutlmv3-base` 8 %.
  Where a call is 9 ms and more of arithmetic in few graphs, nothing is left to gain.
* `cold` holds GraphMend's own work, which reads and checks the mended files in the first compilation; here always with
  an empty cache. The compiler takes as long for one graph as for four, so that cold time mostly rises by that work.
* `mixtral`, `qwen3-moe`, `deepseek-v3`, `qwen2-audio`, `smolvlm` and `longformer-base-4096` keep most of their graphs:
  sizes that tensors decide are kept in a graph by `graphmend run` from torch 2.13 on, and this was 2.11.
* `qwen3-moe` differs: both compiled models differ from the eager one or from each other by more than rounding. Its
  router picks experts by their scores, and one that is rounded otherwise picks another. Run eagerly, the model answers
  the same twice over; mended, on the CPU, it answers the same as plain. More is not known.
* `Phi-4-mini-instruct` and `qwen2.5-vl` fail as they are, unmended, with CUDA graphs of this version.

## Calls that take turns

On a shared machine the clock says little. Here a plain and a mended process, both compiled, make calls in turns, and
what counts is the processor time of each: `gain` is plain by mended, the median over the turns, with the quartiles.
Sizes are small, so that most of it is what Python, guards and graphs cost beside the arithmetic: that is what breaks
cost, and what a larger model hardly notices. A gain below 1 is a loss.

    python bench/turns.py --rows biogpt PegasusForCausalLM layoutlmv3-base --write bench/results/turns.md

{turns}
## Start-up

What `graphmend run` adds until a model of the table is imported, built, compiled (backend `eager`) and called once:
with an empty cache (`cold`), and with that of the run before. Files are mended in a second process while the program
imports and builds; TorchDynamo waits for those that it comes to, and for no other. Most of that is the model's own
file, which is checked again for each set of mends that is tried in it. Cold, half a second is the self-test with which
numbers are kept in the graph, once for each torch. That the cached start is quicker than the plain one is the mends':
one graph is traced in less time than several, with the functions between them.

    python bench/startup.py --elapsed --call --rounds 3 --rows t5-small bart-base --write bench/results/startup.md

{startup}"""


def speed_plots() -> dict[str, str]:
    """The plots beside the tables of speeds, by their files' names."""
    return {name: (_RESULTS / name).read_text("utf-8") for name in ("speed.svg", "speed_cuda.svg")}


def results_page() -> str:
    """The page's text."""
    return _TEXT.format_map({name: (_RESULTS / file).read_text("utf-8") for name, file in _TABLES.items()})
