"""A small compile that touches what most checks touch: modules, breaks of three kinds, a resume function, shapes.

No backward pass (autograd's threads would make the fork unsound) and one thread (so would OpenMP's pool). Measured
on torch 2.13.0: the first check in a fork of a parent that never compiled takes about twice as long.
"""

from __future__ import annotations

import io
import sys
import traceback

import torch
import torch._dynamo

THREADS = torch.get_num_threads()
"""What torch chose before the parent went down to one thread; a check goes back to it."""


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        if x.abs().max() > 1e4:
            x = x.clamp(-1e4, 1e4)
        return x


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        print(x.shape)
        return x * x.sum().item() + torch.nn.functional.softmax(x, dim=-1)


def leave_guards_untimed() -> None:
    """Behind each compilation torch 2.13 flushes the processor's cache and times the guards, for a log alone: half of
    the time of a small one.
    """
    guards = vars(torch._dynamo.guards)
    if "profile_guard_manager" in guards:
        guards["profile_guard_manager"] = lambda *_: 0.0


def run() -> None:
    from ..recording.recorder import Recorder

    leave_guards_untimed()
    torch.set_num_threads(1)
    kept, sys.stdout = sys.stdout, io.StringIO()
    recorder = Recorder(lambda path: True)
    try:
        with recorder, torch.no_grad():
            compiled = torch.compile(Net(), backend=recorder.backend)
            for rows in (2, 3):  # the second has sizes that are symbols, for which sympy loads more
                compiled(torch.ones(rows, 4))
    except Exception:
        traceback.print_exc()  # costs the first check some time; whether checks can be made says the self-test
    finally:
        sys.stdout = kept
    torch._dynamo.reset()
