"""What the analysis knows: text in, findings out. No torch import, no file system, no protocol, no rewrite."""
