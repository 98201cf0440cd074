"""Answers about layers of transformers: what a good model would write in the place of a few statements, and how such
an answer goes wrong. The layers themselves come from transformers 5.23.0, where that is installed, or from the folder
`GRAPHMEND_TRANSFORMERS` (`pip install --target FOLDER transformers==5.23.0`).
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from dataclasses import dataclass
from pathlib import Path

VERSION = "5.23.0"


@dataclass(frozen=True)
class Change:
    """New lines in the place of some: from the one that begins with `first` to the next that begins with `last`."""

    first: str
    last: str
    new: str

    def apply(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        begin = next(n for n, line in enumerate(lines) if line.strip().startswith(self.first))
        end = next(n for n in range(begin, len(lines)) if lines[n].strip().startswith(self.last))
        return "".join([*lines[:begin], self.new, *lines[end + 1 :]])


@dataclass(frozen=True)
class Layer:
    """A method of a layer, and an example of it. `mended` is how many findings without a mend one answer removes."""

    path: str
    name: str
    method: str
    init: str
    inputs: str
    changes: tuple[Change, ...]
    mended: int
    wrong: tuple[tuple[str, str], ...] = ()
    """Texts of the answer, and what makes it a wrong one in their place."""

    @property
    def target(self) -> str:
        return self.name if self.method == "forward" else f"{self.name}.{self.method}"

    def answer(self, source: str) -> str:
        for change in self.changes:
            source = change.apply(source)
        return source


def home() -> Path | None:
    """The folder that holds the transformers of which the answers speak; None where there is none."""
    if given := os.environ.get("GRAPHMEND_TRANSFORMERS"):
        return Path(given)
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found = importlib.metadata.distribution("transformers")
        if found.version == VERSION:
            return Path(str(found.locate_file("")))
    return None


BOTH_NORMS = Change(
    "audio_token_mask = audio_token_mask.to(",
    "# Self Attention",
    """\
            audio_token_mask = audio_token_mask.to(hidden_states.device)
            hidden_states = torch.where(
                audio_token_mask.unsqueeze(-1),
                self.audio_input_layernorm(hidden_states),
                self.input_layernorm(hidden_states),
            )

        # Self Attention
""",
)
BOTH_MLPS = Change(
    "text_hidden_states = self.post",
    "hidden_states[audio_token_mask] +=",
    """\
            text_hidden_states = self.mlp(self.post_attention_layernorm(hidden_states))
            audio_hidden_states = self.audio_mlp(self.audio_post_attention_layernorm(hidden_states))
            hidden_states = hidden_states + torch.where(
                audio_token_mask.unsqueeze(-1), audio_hidden_states, text_hidden_states
            )
""",
)
NO_FULL_ROWS = Change(
    "attention_mask[torch.where",
    "attention_mask[torch.where",
    """\
        full = attention_mask.sum(-1) == attention_mask.shape[-1]
        attention_mask.masked_fill_(full.unsqueeze(-1), False)
""",
)
SORTED_PATCHES = Change(
    "pos_emb_visible = ",
    "pos_emb_mask = ",
    """\
        # the visible patches first, each kind in its order; the encoder has kept as many as are visible
        kept = sequence_output.shape[0] * sequence_output.shape[1]
        patches = torch.argsort(bool_masked_pos.flatten().int(), dim=0, stable=True)
        embeddings = expanded_position_embeddings.reshape(-1, num_channels)
        pos_emb_visible = embeddings[patches[:kept]].reshape(batch_size, -1, num_channels)
        pos_emb_mask = embeddings[patches[kept:]].reshape(batch_size, -1, num_channels)
""",
)
SORTED_LABELS = Change(
    "labels = videos_patch[",
    "labels = videos_patch[",
    """\
            labels = videos_patch.reshape(-1, num_channels)[patches[kept:]].reshape(batch_size, -1, num_channels)
""",
)
RUN_OF_A_ROW = (
    Change("_, starts = torch.where(", "sample_lengths = ", ""),
    Change(
        "cumsum_samples = ",
        "sample_indices = ",
        """\
        # the run of audio tokens that each output row begins in, found among all tokens
        begins = (diff[:, :-1] == 1).flatten()
        token_counts = torch.cumsum(audio_token_mask.flatten(), dim=0)
        first_tokens = torch.searchsorted(token_counts, cumsum_post, right=True)
        sample_indices = (torch.cumsum(begins, dim=0) - 1)[first_tokens]
""",
    ),
    Change(
        "sample_start_rows = torch.searchsorted(",
        ")",
        "        sample_start_rows = torch.searchsorted(sample_indices, sample_indices)\n",
    ),
    Change(
        "torch.arange(post_lengths.shape[0]",
        "torch.arange(post_lengths.shape[0]",
        "            torch.arange(post_lengths.shape[0], device=post_lengths.device) - sample_start_rows\n",
    ),
)
PLACEHOLDERS = Change(
    "inputs_embeds[special_audio_mask]",
    "inputs_embeds[special_audio_mask]",
    "            special_audio_mask.sum() == audio_features.numel(),\n",
)

_TEXT = (
    "dict(model_type={!r}, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, "
    "num_key_value_heads=2, vocab_size=32, head_dim=8)"
)
_AUDIO = (
    "dict(model_type={!r}, hidden_size=16, d_model=16, intermediate_size=16, num_hidden_layers=1, "
    "num_attention_heads=2, num_mel_bins=8, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=16)"
)
_FLAMINGO = (
    f"MusicFlamingoModel(MusicFlamingoConfig(audio_token_id=5, audio_config={_AUDIO.format('audioflamingo3_encoder')}, "
    f"text_config={_TEXT.format('qwen2')}))"
)

LAYERS = {
    "higgs-audio": Layer(
        "higgs_audio_v2/modeling_higgs_audio_v2.py",
        "HiggsAudioV2DecoderLayer",
        "forward",
        "HiggsAudioV2DecoderLayer(HiggsAudioV2Config(hidden_size=16, intermediate_size=32, num_attention_heads=2, "
        "num_key_value_heads=2, head_dim=8, num_hidden_layers=1, attn_implementation='eager'), 0)",
        "(torch.randn(2, 3, 16), (torch.randn(2, 3, 8), torch.randn(2, 3, 8)), None, "
        "torch.tensor([[True, False, True], [False, False, True]]))",
        (BOTH_NORMS, BOTH_MLPS),
        6,
        (
            ("audio_hidden_states, text_hidden_states\n", "text_hidden_states, audio_hidden_states\n"),
            ("hidden_states = hidden_states + torch.where(", "hidden_states = torch.where("),
            ("                self.input_layernorm(hidden_states),\n", "                hidden_states,\n"),
            ("text_hidden_states = self.mlp(", "text_hidden_states = self.audio_mlp("),
            ("audio_hidden_states, text_hidden_states\n", "audio_hidden_states, text_hidden_states.detach()\n"),
        ),
    ),
    "oneformer": Layer(
        "oneformer/modeling_oneformer.py",
        "OneFormerTransformerDecoderLayer",
        "forward",
        "OneFormerTransformerDecoderLayer(OneFormerConfig(hidden_dim=16, num_attention_heads=2, dim_feedforward=32, "
        "text_encoder_width=16))",
        "(0, torch.randn(5, 2, 16), [torch.randn(6, 2, 16)], [torch.randn(6, 2, 16)], torch.rand(4, 5, 6) > 0.3, "
        "torch.randn(5, 2, 16))",
        (NO_FULL_ROWS,),
        1,
        (
            ("attention_mask.masked_fill_(", "attention_mask = attention_mask.masked_fill("),
            ("unsqueeze(-1), False)", "unsqueeze(-1), True)"),
            ("== attention_mask.shape[-1]", "== 0"),
        ),
    ),
    "videomae": Layer(
        "videomae/modeling_videomae.py",
        "VideoMAEForPreTraining",
        "forward",
        "VideoMAEForPreTraining(VideoMAEConfig(image_size=32, patch_size=16, num_frames=4, hidden_size=16, "
        "num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, decoder_hidden_size=16, "
        "decoder_num_hidden_layers=1, decoder_num_attention_heads=2, decoder_intermediate_size=32))",
        "(torch.rand(2, 4, 3, 32, 32), torch.tensor([[True, False, True, True, False, True, False, True], "
        "[False, True, True, False, True, True, True, False]]))",
        (SORTED_PATCHES, SORTED_LABELS),
        3,
        (
            ("        loss_fct = MSELoss()", "        labels = labels.flip(1)\n        loss_fct = MSELoss()"),
            ("dim=0, stable=True)", "dim=0, descending=True, stable=True)"),
        ),
    ),
    "musicflamingo": Layer(
        "musicflamingo/modeling_musicflamingo.py",
        "MusicFlamingoModel",
        "_build_audio_timestamps",
        _FLAMINGO,
        "(torch.tensor([[1, 5, 5, 5, 5, 2], [5, 5, 1, 2, 5, 3]]), torch.tensor([2, 2, 2, 1]), 2)",
        RUN_OF_A_ROW,
        2,
        (
            ("cumsum_post, right=True)", "cumsum_post)"),
            ("(sample_indices, sample_indices)", "(sample_indices, sample_indices, right=True)"),
        ),
    ),
}  # fmt: skip
MOVED = Layer(
    "musicflamingo/modeling_musicflamingo.py",
    "MusicFlamingoModel",
    "get_placeholder_mask",
    _FLAMINGO,
    "(torch.tensor([[1, 5, 5, 2], [5, 1, 2, 3]]), torch.randn(2, 4, 16), torch.randn(3, 16))",
    (PLACEHOLDERS,),
    1,
)
"""The break is gone from the function, and another one has come into what it calls."""
