"""What runs in the user's interpreter: standard library and torch only, nothing of ours, syntax of Python 3.9.

`main.py` is started by path; it loads the other modules under a private package name, so that neither this folder
nor the name `worker` is visible to the code that is checked.
"""
