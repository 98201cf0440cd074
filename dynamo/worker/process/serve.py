"""The worker's life: it says hello, warms up and forks for each check; with `--once` it runs one check itself and ends.

`--once` is for systems without a sound fork.
"""

from __future__ import annotations

import os
import sys
import time
import traceback

from . import confinement, limits
from .channel import Message, receive, send
from .fork_server import Parent
from .handshake import handshake, one_line


def main(requests: int, answers: int, once: bool) -> None:
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # counting devices must not initialise CUDA
    hello = handshake()
    send(answers, hello)
    if hello["problem"]:
        return
    if once:
        job = receive(requests)
        if job is not None:
            os.close(requests)
            limits.apply(job["timeout"] * (os.cpu_count() or 1), job.get("memory"))
            from ..runs import self_test, warmup

            warmup.leave_guards_untimed()
            self_test.run()
            send(answers, {"id": job["id"], "end": "done", "result": run_job(job, answers)})
        return
    warm(answers)
    Parent(requests, answers, run_job).run()


def warm(answers: int) -> None:
    """A small compile, so that modules which Dynamo imports late are there before the first fork, and the self-test."""
    import gc

    from ..runs import self_test, warmup
    from . import no_device

    began = time.monotonic()
    with no_device.hidden():
        warmup.run()
        self_test.run()
    gc.collect()
    gc.freeze()  # objects made so far stay in pages that the forks share
    send(answers, {"warm": round(time.monotonic() - began, 3), "memory": resident(), "files": installed()})


def installed() -> list[str]:
    """The first file of each installed package that this process holds: a check must not see an older one."""
    names = {name.partition(".")[0] for name in sys.modules}
    files = [getattr(sys.modules.get(name), "__file__", None) for name in sorted(names)]
    return [file for file in files if file and ("site-packages" in file or "dist-packages" in file)]


def resident() -> int | None:
    """Bytes of memory that this process occupies (Linux)."""
    try:
        with open("/proc/self/statm") as table:
            return int(table.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def run_job(job: Message, answers: int) -> Message:
    """Runs one check in this process. Whatever it raises becomes a `problem`."""

    def say(message: Message) -> None:
        send(answers, {"id": job["id"], **message})

    try:
        from .. import job as job_module

        if job.get("confined"):
            confinement.apply(job["confined"])
        return job_module.run(job, say)
    except confinement.Unconfined as error:
        return {"problem": f"the mended text cannot be confined: {error}"}
    except MemoryError:
        return {"problem": "the check ran out of memory"}
    except KeyboardInterrupt:
        return {"problem": "the checked code raised KeyboardInterrupt"}
    except SystemExit as error:
        called = "the checked code called sys.exit"
        return {"problem": f"{called}({error.code!r})", "bare": called}
    except BaseException as error:
        traceback.print_exc()
        failed = f"the check failed: {type(error).__name__}"
        return {"problem": f"{failed}: {one_line(error)}", "bare": failed}
