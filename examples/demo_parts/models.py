"""The models of the demo: where their code is, how a tiny one is built, and what is expected of it.

The expressions are Python text. They become `[[tool.graphmend.targets]]` of the workspace, for the server to check, and
are evaluated by `runs.py`, which compares outputs. Knows neither of the two, and imports no torch.
"""

from __future__ import annotations

from dataclasses import dataclass

TRANSFORMERS = "4.52.4"
"""The version that the figures below hold for: the one of the GraphMend paper's table."""


@dataclass(frozen=True)
class Side:
    """One way through the model: the same model and inputs, `prepare` first.

    `reaches` is an expression over the eager `output` that is true if the run went this way.
    """

    name: str
    prepare: str = ""
    reaches: str = "True"


@dataclass(frozen=True)
class Model:
    name: str
    module: str
    init: str
    inputs: str
    breaks: int
    """Graph breaks before mending in the paper's table: FX graphs minus one."""
    logs: str
    """Begins the message that the model logs in each run."""
    dtype: str
    sides: tuple[Side, ...] = (Side("as built"),)

    @property
    def file(self) -> str:
        """The file below the folder that holds the package."""
        return self.module.replace(".", "/") + ".py"


T5 = Model(
    name="T5ForConditionalGeneration",
    module="transformers.models.t5.modeling_t5",
    init=(
        "T5ForConditionalGeneration(T5Config("
        "vocab_size=128, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)).eval()"
    ),
    inputs=("dict(input_ids=torch.randint(3, 128, (2, 9)), decoder_input_ids=torch.randint(3, 128, (2, 5)))"),
    breaks=3,
    logs="Passing a tuple of `past_key_values` is deprecated",
    dtype="float32",
)

# The guard against overflow stands behind the encoder layer's last normalisation. A normalised value is seldom above 4,
# so a weight of 6e4 there takes some values, not all, past what float16 holds.
_LAST_NORM = "model.model.encoder.layers[-1].final_layer_norm.weight"
_LARGEST = "output.encoder_last_hidden_state.abs().max()"
_CLAMPED = "torch.finfo(torch.float16).max - 1000"

BART = Model(
    name="BartForConditionalGeneration",
    module="transformers.models.bart.modeling_bart",
    init=(
        "BartForConditionalGeneration(BartConfig("
        "vocab_size=128, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, "
        "decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64)).half().eval()"
    ),
    inputs=(
        "dict(input_ids=torch.randint(3, 128, (2, 12)), attention_mask=torch.ones(2, 12, dtype=torch.long), "
        "decoder_input_ids=torch.full((2, 1), 2))"
    ),
    breaks=7,
    logs="Passing a tuple of `past_key_values` is deprecated",
    dtype="float16",
    sides=(
        Side("no overflow", reaches=f"{_LARGEST} < 100"),
        Side("overflow, clamped", prepare=f"{_LAST_NORM}.fill_(6e4)", reaches=f"{_LARGEST} == {_CLAMPED}"),
    ),
)

MODELS = {"t5": T5, "bart": BART}
