"""What a replacement may contain, decided on its syntax tree before anything of it runs.

`form.refusal` is the entry. Each gate answers with one sentence that the model and the user read, or with None.
"""
