"""GraphMend for assistants that edit code: the Model Context Protocol over standard input and output.

The assistant is the model, GraphMend the gate: what it wants to put in a function's place passes the gates of `model`.
"""
