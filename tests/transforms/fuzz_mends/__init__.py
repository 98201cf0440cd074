"""Random programs, mended and judged: `python -m fuzz_mends`, or `make fuzz-mends`.

`grammar` composes the text of a program from the rules in `grammar_*`, `program` makes a whole file and its inputs,
`mending` asks GraphMend, `observe` runs a text on the inputs in a fork, `judge` compares, `verdict` does all of it for
one program, `shrink` makes a wrong one small, and `campaign` looks at many. `given` reads programs that somebody wrote.
"""
