"""What is no call, or a call with one kind of argument: small programs, by the name under which facts hold them.

Each stands in the body of a compiled function of `x`, a 4x4 tensor, and `k`, an integer tensor, where `y` is computed
from `x`, `i` from `k`, `b` is a mask, and `value` is what the form is about; `probes/calls.py` has what else stands
around it. What a version of torch does otherwise than the newest one is in its `calls-X.Y.json`.
"""

from __future__ import annotations

#: name of a form: programs that all have it
FORMS: dict[str, list[str]] = {
    "a tensor == None": ["y == None", "x == None"],
    "an attribute set on a class": ["None; Plain.size = 4", "None; Plain.more = 'text'"],
    "the length of a __dict__": ["len(plain.__dict__)", "len(module.__dict__)"],
    "sys.version_info > a tuple": ["sys.version_info >= (3, 8)", "sys.version_info > (3,)"],
    "a tensor in list.remove": ["[x, y].remove(x)", "[y, x].remove(y)"],
    "a deep copy of a container": ["copy.deepcopy([1, 2])", "copy.deepcopy({'a': 1})", "copy.deepcopy((1, 'a'))"],
    "a size indexed by a tensor": ["x.shape[k[0]]", "y.shape[i[0]]", "x.size()[k[0]]"],
}
