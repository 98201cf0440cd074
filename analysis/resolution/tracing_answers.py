"""Functions that ask whether code is being traced, and their results while TorchDynamo traces."""

from __future__ import annotations

from graphmend.analysis.lattice.values import FALSE, NONE, TRUE, Value

#: by qualified name (torch 2.13); libraries' own spellings of the same question stand here because their text hides the
#: answer in version checks
WHILE_TRACING: dict[str, Value] = {
    "torch.compiler.is_compiling": TRUE, "torch.compiler.is_dynamo_compiling": TRUE,
    "torch._dynamo.is_compiling": TRUE, "torch._dynamo.external_utils.is_compiling": TRUE,
    "torch._utils.is_compiling": TRUE, "torch.compiler.is_exporting": FALSE, "torch.jit.is_scripting": FALSE,
    "torch.jit.is_tracing": FALSE, "torch._C._get_tracing_state": NONE, "torch.onnx.is_in_onnx_export": FALSE,
    "torch.overrides.has_torch_function": FALSE, "transformers.utils.is_torchdynamo_compiling": TRUE,
    "transformers.utils.import_utils.is_torchdynamo_compiling": TRUE, "transformers.utils.is_tracing": TRUE,
    "transformers.utils.import_utils.is_tracing": TRUE, "transformers.utils.is_torch_fx_proxy": FALSE,
    "transformers.utils.is_torch_available": TRUE, "transformers.utils.import_utils.is_torch_fx_proxy": FALSE,
    "transformers.utils.import_utils.is_torch_available": TRUE, "transformers.utils.generic.is_torch_fx_proxy": FALSE,
}  # fmt: skip
