"""Histories: what each call of compiled code is given, one after the other, as far as driver code tells it."""
