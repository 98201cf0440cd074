"""One rule a file. `RULES` lists them all, in the order of their codes; a test holds the list and the folder together."""

from graphmend.analysis.rules.output_logging import Logging
from graphmend.analysis.rules.output_print import Print
from graphmend.analysis.rules.output_warnings import Warnings
from graphmend.analysis.rules.rule import Rule
from graphmend.analysis.rules.scalar_conversion import ScalarConversion
from graphmend.analysis.rules.tensor_assert import TensorAssert
from graphmend.analysis.rules.tensor_branch import TensorBranch
from graphmend.analysis.rules.tensor_membership import TensorMembership
from graphmend.analysis.rules.tensor_raise_guard import TensorRaiseGuard

RULES: tuple[Rule, ...] = (
    TensorBranch(),
    TensorRaiseGuard(),
    TensorAssert(),
    TensorMembership(),
    Print(),
    Logging(),
    Warnings(),
    ScalarConversion(),
)
