"""GraphMend finds, explains and mends the graph breaks of ``torch.compile`` in Python source."""

__version__ = "0.1.0"


def load_ipython_extension(ipython: object) -> None:
    """``%load_ext graphmend``: makes the cell magic ``%%graphmend`` known."""
    from graphmend.cli.jupyter.magic import register

    register(ipython)
