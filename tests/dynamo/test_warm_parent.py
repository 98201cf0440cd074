"""The warm parent on a machine with a CUDA device, which is played here: TorchDynamo would initialise CUDA in it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PLAYED = """
    import os, torch, torch._dynamo.device_interface

    def counted():
        return 1 if torch.cuda._parse_visible_devices() else 0

    def initialised(*_):
        os.write(2, b"CUDA was initialised")
        os._exit(3)

    torch.version.hip = None
    torch.cuda._is_compiled = lambda: True
    torch.cuda._device_count_nvml = counted
    torch.cuda._lazy_init = torch._C._cuda_init = torch._C._cuda_getDeviceCount = initialised
    torch.cuda.get_rng_state = torch.cuda.get_device_properties = initialised
    torch._C._ensureCUDADeviceGuardSet = initialised
"""


def in_parent(work: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs work in a process in which torch sees a device."""
    text = "\n".join([textwrap.dedent(PLAYED), textwrap.dedent(work)])
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=os.environ | environment, timeout=120
    )


def test_torch_would_initialise_cuda() -> None:
    """Else the test below would show nothing."""
    ended = in_parent(
        """
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        """
    )
    assert (ended.returncode, ended.stderr) == (3, "CUDA was initialised")


@pytest.mark.parametrize("visible", ["0,1", None])
def test_warming_up_leaves_cuda_alone(visible: str | None) -> None:
    ended = in_parent(
        """
        from graphmend.dynamo.worker.process import serve
        from graphmend.dynamo.worker.runs import self_test

        answers, said = os.pipe()
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        serve.warm(said)
        assert self_test.failure is None, self_test.failure
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == before
        assert torch.cuda.is_available(), "the forks would not find the device"
        from torch._dynamo import device_interface

        assert "cuda:0" in dict(device_interface.get_registered_device_interfaces()), "nor would TorchDynamo in them"
        """,
        **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}),
    )
    assert ended.returncode == 0, ended.stderr
