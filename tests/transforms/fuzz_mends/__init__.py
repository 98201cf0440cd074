"""Random programs, mended and judged: `python -m fuzz_mends`, or `make fuzz-mends`.

`grammar` composes the text of a program from the rules in `grammar_*`, `program` makes a whole file and its inputs,
`mending` asks GraphMend, `observe` runs a text on the inputs in a process of its own, `judge` compares, `shrink` makes a
wrong program small, and `campaign` does all of it for many programs.
"""
