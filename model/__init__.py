"""A typed question to a language model about a break that no rule mends, and the gates that its answer must pass.

Nothing here runs unless a user asks: `ask.py` holds one question from its subject to a verified fix.
"""
