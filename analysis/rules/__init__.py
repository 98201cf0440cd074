"""One rule a file. `RULES` lists them all, in the order of their codes; a test holds the list and the folder
together."""

from graphmend.analysis.rules.autograd_call import AutogradCall
from graphmend.analysis.rules.changing_attribute import ChangingAttribute
from graphmend.analysis.rules.computed_index import ComputedIndex
from graphmend.analysis.rules.debugger import Debugger
from graphmend.analysis.rules.disabled_call import DisabledCall
from graphmend.analysis.rules.dynamic_shape import DynamicShape
from graphmend.analysis.rules.environment import Environment
from graphmend.analysis.rules.generator_root import GeneratorRoot
from graphmend.analysis.rules.mask_read import MaskRead
from graphmend.analysis.rules.output_logging import Logging
from graphmend.analysis.rules.output_print import Print
from graphmend.analysis.rules.output_progress import ProgressBar
from graphmend.analysis.rules.output_warnings import Warnings
from graphmend.analysis.rules.parameter_in_forward import ParameterInForward
from graphmend.analysis.rules.python_feature import PythonFeature
from graphmend.analysis.rules.recurrent_module import RecurrentModule
from graphmend.analysis.rules.refused_context import RefusedContext
from graphmend.analysis.rules.refused_torch_call import RefusedTorchCall
from graphmend.analysis.rules.rule import Rule
from graphmend.analysis.rules.scalar_conversion import ScalarConversion
from graphmend.analysis.rules.tensor_assert import TensorAssert
from graphmend.analysis.rules.tensor_branch import TensorBranch
from graphmend.analysis.rules.tensor_loop import TensorLoop
from graphmend.analysis.rules.tensor_membership import TensorMembership
from graphmend.analysis.rules.tensor_raise_guard import TensorRaiseGuard
from graphmend.analysis.rules.tensor_size import TensorSize
from graphmend.analysis.rules.tensor_text import TensorText
from graphmend.analysis.rules.uncaught_raise import UncaughtRaise

RULES: tuple[Rule, ...] = (
    TensorBranch(),
    TensorRaiseGuard(),
    TensorAssert(),
    TensorMembership(),
    TensorLoop(),
    Print(),
    Logging(),
    Warnings(),
    ProgressBar(),
    Environment(),
    Debugger(),
    ScalarConversion(),
    TensorText(),
    ComputedIndex(),
    DynamicShape(),
    MaskRead(),
    TensorSize(),
    PythonFeature(),
    DisabledCall(),
    ChangingAttribute(),
    UncaughtRaise(),
    GeneratorRoot(),
    AutogradCall(),
    ParameterInForward(),
    RecurrentModule(),
    RefusedTorchCall(),
    RefusedContext(),
)
