"""An output call as data: its template, the looks of its tensors, and the table in which a graph finds it."""
