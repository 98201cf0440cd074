"""One rule a file, by family. `RULES` lists them in the order in which they are asked: the first that judges an event
speaks for it. A test holds the list and the folder together."""

from graphmend.analysis.rules.control_flow.tensor_assert import TensorAssert
from graphmend.analysis.rules.control_flow.tensor_branch import TensorBranch
from graphmend.analysis.rules.control_flow.tensor_loop import TensorLoop
from graphmend.analysis.rules.control_flow.tensor_membership import TensorMembership
from graphmend.analysis.rules.control_flow.tensor_raise_guard import TensorRaiseGuard
from graphmend.analysis.rules.output.debugger import Debugger
from graphmend.analysis.rules.output.environment import Environment
from graphmend.analysis.rules.output.output_logging import Logging
from graphmend.analysis.rules.output.output_print import Print
from graphmend.analysis.rules.output.output_progress import ProgressBar
from graphmend.analysis.rules.output.output_warnings import Warnings
from graphmend.analysis.rules.python.certain_error import CertainError
from graphmend.analysis.rules.python.class_feature import ClassFeature
from graphmend.analysis.rules.python.disabled_call import DisabledCall
from graphmend.analysis.rules.python.generator_root import GeneratorRoot
from graphmend.analysis.rules.python.own_object import OwnObject
from graphmend.analysis.rules.python.python_feature import PythonFeature
from graphmend.analysis.rules.python.refused_form import RefusedForm
from graphmend.analysis.rules.python.uncaught_raise import UncaughtRaise
from graphmend.analysis.rules.python.untraced_object import UntracedObject
from graphmend.analysis.rules.recompilation.changing_attribute import ChangingAttribute
from graphmend.analysis.rules.recompilation.new_function import NewFunction
from graphmend.analysis.rules.recompilation.static_shape import StaticShape
from graphmend.analysis.rules.recompilation.toggled_attribute import ToggledAttribute
from graphmend.analysis.rules.recompilation.varying_argument import VaryingArgument
from graphmend.analysis.rules.recompilation.varying_backend import VaryingBackend
from graphmend.analysis.rules.recompilation.varying_container import VaryingContainer
from graphmend.analysis.rules.recompilation.varying_global import VaryingGlobal
from graphmend.analysis.rules.recompilation.varying_mode import VaryingMode
from graphmend.analysis.rules.recompilation.varying_shape import VaryingShape
from graphmend.analysis.rules.recompilation.varying_tensor import VaryingTensor
from graphmend.analysis.rules.recompilation.varying_text import VaryingText
from graphmend.analysis.rules.rule import Rule
from graphmend.analysis.rules.scalars.computed_index import ComputedIndex
from graphmend.analysis.rules.scalars.scalar_conversion import ScalarConversion
from graphmend.analysis.rules.scalars.tensor_text import TensorText
from graphmend.analysis.rules.shapes.dynamic_shape import DynamicShape
from graphmend.analysis.rules.shapes.mask_read import MaskRead
from graphmend.analysis.rules.shapes.tensor_size import TensorSize
from graphmend.analysis.rules.torch_api.autograd_call import AutogradCall
from graphmend.analysis.rules.torch_api.autograd_function import AutogradFunction
from graphmend.analysis.rules.torch_api.custom_operator import CustomOperator
from graphmend.analysis.rules.torch_api.operator_body import OperatorBody
from graphmend.analysis.rules.torch_api.parameter_in_forward import ParameterInForward
from graphmend.analysis.rules.torch_api.recurrent_module import RecurrentModule
from graphmend.analysis.rules.torch_api.refused_arguments import RefusedArguments
from graphmend.analysis.rules.torch_api.refused_context import RefusedContext
from graphmend.analysis.rules.torch_api.refused_torch_call import RefusedTorchCall

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
    RefusedForm(),
    PythonFeature(),
    UntracedObject(),
    ClassFeature(),
    DisabledCall(),
    CertainError(),
    OwnObject(),
    UncaughtRaise(),
    GeneratorRoot(),
    RefusedArguments(),
    AutogradCall(),
    ParameterInForward(),
    RecurrentModule(),
    OperatorBody(),
    CustomOperator(),
    AutogradFunction(),
    RefusedTorchCall(),
    RefusedContext(),
    ChangingAttribute(),
    VaryingText(),
    VaryingGlobal(),
    NewFunction(),
    VaryingArgument(),
    VaryingContainer(),
    StaticShape(),
    VaryingShape(),
    VaryingTensor(),
    ToggledAttribute(),
    VaryingMode(),
    VaryingBackend(),
)
