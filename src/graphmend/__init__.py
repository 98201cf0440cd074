"""GraphMend finds, explains and mends the graph breaks of ``torch.compile`` in Python source."""

__version__ = "0.1.0"
