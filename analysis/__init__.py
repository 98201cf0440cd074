"""Static analysis: the text of a module in, findings of graph breaks out. No torch import, no file system, no protocol,
no rewrite."""
