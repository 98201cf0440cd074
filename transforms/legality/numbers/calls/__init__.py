"""Numbers that go from one function of the program to another."""
