"""`graphmend sweep --address` on a real cluster of two nodes on this machine. Needs Ray, which `dev` leaves out:

pip install 'graphmend[ray]' && pytest tests/cli/test_sweep_ray.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.main import main

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'graphmend[ray]'"
)

#: a cluster of two nodes with one core each, in a process of its own that does what it reads
CLUSTER = """
import sys
from ray.cluster_utils import Cluster

node = {"num_cpus": 1, "object_store_memory": 100 * 1024 * 1024}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
second = cluster.add_node(**node)
print(cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(second, allow_graceful=False)
    print("killed", flush=True)
cluster.shutdown()
"""

#: notes each import; `Kills` ends, the first time, the process of Ray's that its worker belongs to
TARGET = """
import os
import time
import torch
from torch import nn

with open({log!r}, "a") as log:
    log.write({name!r} + "\\n")
if {name!r} == "Kills" and open({log!r}).read().count("Kills") == 1:
    with open(f"/proc/{{os.getppid()}}/stat") as stat:
        os.kill(int(stat.read().rpartition(")")[2].split()[1]), 9)
time.sleep(2)

class {name}(nn.Module):
    def forward(self, x):
        x = x + 1
        {body}
        return x * 2

def example_inputs():
    return [(torch.ones(3),)]
"""
PLAIN = ("A", "B", "C", "D", "Kills")


class TwoNodes:
    def __init__(self, folder: Path, **environment: str) -> None:
        self._errors = open(folder / "cluster.log", "w")  # noqa: SIM115  # closed with the cluster
        self._process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **environment},
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, (folder / "cluster.log").read_text()

    def kill_the_second(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "killed\n"

    def close(self) -> None:
        self._process.communicate()
        self._errors.close()


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    nodes = TwoNodes(tmp_path_factory.mktemp("cluster"))
    yield nodes
    nodes.close()


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "graphmend", "sweep", "--device", "cpu", "--python", sys.executable, *words]


def lines(path: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({line["target"] for line in found}) == len(found)
    return {line["target"]: comparable(line) for line in found}


def comparable(value: Any) -> Any:
    """What does not differ from one run to the next."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if key not in ("run", "seconds")}
    return [comparable(each) for each in value] if isinstance(value, list) else value


@needs_ray
@pytest.mark.torch
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kills processes by what /proc says")
def test_a_worker_and_a_node_that_are_killed_lose_nothing(folder: Path, cluster: TwoNodes) -> None:
    log = folder / "log.txt"
    for name in (*PLAIN, "Prints"):
        body = 'print("here")' if name == "Prints" else "pass"
        (folder / f"{name.lower()}.py").write_text(TARGET.format(name=name, log=str(log), body=body))
    (folder / "raises.py").write_text("import torch\nimport not_installed\n\nclass R(torch.nn.Module):\n"
                                      "    def forward(self, x):\n        return x\n")  # fmt: skip
    sweep = subprocess.Popen(command(".", "-o", "ray.jsonl", "--address", cluster.address), text=True)
    output = folder / "ray.jsonl"
    until = time.monotonic() + 120
    while not output.exists() or output.read_text().count("\n") < 2:
        assert sweep.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    cluster.kill_the_second()
    assert sweep.wait(240) == 1
    begun = Counter(log.read_text().split())

    # nothing is lost, and only what was running is begun again: one by the worker's death, one by the node's
    found = lines(output)
    assert {target: line["outcome"] for target, line in found.items()} == {
        **{f"{name.lower()}.py:{name}": "one-graph" for name in PLAIN},
        "prints.py:Prints": "mended",
        "raises.py:R": "failed",
    }
    assert begun["Kills"] >= 2
    again = {name: begun[name] - (2 if name == "Prints" else 1) for name in (*PLAIN, "Prints")}  # plain and mended
    assert sum(count > 0 for name, count in again.items() if name != "Kills") <= 1
    assert (folder / "ray.html").is_file()

    # and the result is that of this machine alone
    log.write_text("Kills\n")
    assert subprocess.run(command(".", "-o", "local.jsonl", "--jobs", "2"), check=False).returncode == 1
    assert lines(folder / "local.jsonl") == found


@needs_ray
@pytest.mark.torch
def test_files_are_shipped_and_what_a_node_lacks_is_said(folder: Path, tmp_path: Path) -> None:
    models = folder / "models"
    models.mkdir()
    text = (
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x + 1\n"
    )
    (models / "net.py").write_text(text)
    cluster = TwoNodes(folder)
    try:
        ship = command("net.py", "-o", "out.jsonl", "--address", cluster.address, "--ship", "models")
        assert subprocess.run(ship, check=False).returncode == 0
        assert list(lines(folder / "out.jsonl")) == ["net.py:Net"]
        assert "runtime_resources" not in (folder / "out.jsonl").read_text()
    finally:
        cluster.close()
    without = TwoNodes(folder, PYTHONPATH=str(hide_graphmend(folder)))
    try:
        other = command("models", "-o", "other.jsonl", "--address", without.address)
        done = subprocess.run(other, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        (said,) = [line for line in done.stderr.splitlines() if line.startswith("graphmend: ")]
        assert "the nodes of the cluster cannot run graphmend: " in said
        assert not (folder / "other.jsonl").exists()
    finally:
        without.close()


def hide_graphmend(folder: Path) -> Path:
    """A folder whose `graphmend` stands before the real one, and cannot be imported."""
    hidden = folder / "hidden" / "graphmend"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('No module named graphmend')\n")
    return hidden.parent


# without Ray


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["sweep", *words]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    return errors


def test_what_is_wrong_with_a_cluster_is_said_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "net.py").write_text("import torch\n")
    monkeypatch.setitem(sys.modules, "ray", None)  # as where it is not installed
    assert "--address needs Ray" in told(capsys, "net.py", "--address", "auto")
    assert "pip install 'graphmend[ray]'" in told(capsys, "net.py", "--address", "auto")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    assert "no Ray cluster answers at" in told(capsys, "net.py", "--address", f"127.0.0.1:{port}")
    for wrong in ("somewhere", "host:x", ":1"):
        assert "is no address of a Ray cluster" in told(capsys, "net.py", "--address", wrong)
    assert "need --address" in told(capsys, "net.py", "--gpus", "0.5")
    assert "for Ray to say" in told(capsys, "net.py", "--address", "auto", "--jobs", "2")
    assert "not a number above 0" in told(capsys, "net.py", "--address", "auto", "--gpus", "0")
    assert not (folder / "graphmend-sweep.jsonl").exists()


@needs_ray
def test_no_cluster_to_be_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "net.py").write_text("import torch\n")
    command_ = command("net.py", "--address", "auto")
    done = subprocess.run(command_, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "graphmend: no Ray cluster at auto: " in done.stderr
