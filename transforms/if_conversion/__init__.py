"""Branches as data flow: what each side computes, and how the sides are selected."""
