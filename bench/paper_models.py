"""Small seeded models for rows of the paper's table: what decides a break (layers, precision, inputs) is kept, sizes
are not. Needs torch and transformers 4.52.4, no download.

A builder gives the model and two sets of inputs; the second has other values of the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

VOCABULARY = 96
Built = tuple[Any, list[dict[str, Any]]]


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(5, VOCABULARY, shape)


def twice(make: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
    return [make(), make()]


def t5(*, gated: bool = False, tied: bool = True) -> Built:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=24, d_kv=12, d_ff=48, num_layers=2, num_heads=2, tie_word_embeddings=tied,
        feed_forward_proj="gated-gelu" if gated else "relu",
    )  # fmt: skip
    inputs = twice(lambda: {"input_ids": tokens(2, 7), "decoder_input_ids": tokens(2, 4)})
    return transformers.T5ForConditionalGeneration(config), inputs


_ENCODER_DECODER = {
    "vocab_size": VOCABULARY, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 48,
}  # fmt: skip


def half_with_mask(name: str, config_name: str, **extra: Any) -> Built:
    """fp16, a mask, one decoder token: as the authors ran these rows."""
    config = getattr(transformers, config_name)(**_ENCODER_DECODER, **extra)
    model = getattr(transformers, name)(config).half()

    def inputs() -> dict[str, Any]:
        start = torch.full((2, 1), config.decoder_start_token_id)
        return {"input_ids": tokens(2, 10), "attention_mask": torch.ones(2, 10).long(), "decoder_input_ids": start}

    return model, twice(inputs)


def whisper() -> Built:
    sizes = {k: v for k, v in _ENCODER_DECODER.items() if k != "max_position_embeddings"}
    config = transformers.WhisperConfig(
        **sizes, num_mel_bins=8, max_source_positions=20, max_target_positions=24, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip
    inputs = twice(lambda: {"input_features": torch.randn(1, 8, 40), "decoder_input_ids": tokens(1, 4)})
    return transformers.WhisperForConditionalGeneration(config), inputs


def blenderbot() -> Built:
    model = transformers.BlenderbotForConditionalGeneration(transformers.BlenderbotConfig(**_ENCODER_DECODER))
    return model, twice(lambda: {"input_ids": tokens(1, 7), "decoder_input_ids": tokens(1, 4)})


def pegasus() -> Built:
    model = transformers.PegasusForCausalLM(transformers.PegasusConfig(**_ENCODER_DECODER))
    return model, twice(lambda: {"input_ids": tokens(1, 7)})


def biogpt() -> Built:
    config = transformers.BioGptConfig(
        vocab_size=VOCABULARY, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=48,
    )  # fmt: skip
    return transformers.BioGptForCausalLM(config), twice(lambda: {"input_ids": tokens(1, 7)})


def phi3_longrope() -> Built:
    """The second inputs stand past the original length, which is the other side of its branch."""
    config = transformers.Phi3Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, original_max_position_embeddings=16, pad_token_id=0,
        rope_scaling={"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8},
    )  # fmt: skip
    places = torch.arange(7)[None]
    inputs = [{"input_ids": tokens(1, 7), "position_ids": places + shift} for shift in (0, 20)]
    return transformers.Phi3ForCausalLM(config), inputs


def layoutlmv3() -> Built:
    config = transformers.LayoutLMv3Config(
        vocab_size=VOCABULARY, hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=48, coordinate_size=8, shape_size=8, input_size=32, patch_size=16, visual_embed=False,
    )  # fmt: skip
    inputs = twice(lambda: {"input_ids": tokens(1, 7), "bbox": torch.randint(500, (1, 7, 2)).repeat(1, 1, 2)})
    return transformers.LayoutLMv3Model(config), inputs


def grounding_dino() -> Built:
    """All of its layers and levels, which decide what breaks; the words are those of a caption in BERT's vocabulary."""
    config = transformers.GroundingDinoConfig(
        backbone_config=transformers.SwinConfig(
            image_size=224, window_size=7, embed_dim=12, depths=[2, 2, 6, 2], num_heads=[1, 1, 2, 2],
            out_indices=[2, 3, 4],
        ),
        text_config=transformers.BertConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
        ),
        use_timm_backbone=False, d_model=32, encoder_layers=6, decoder_layers=6, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=100,
    )  # fmt: skip
    two, three = [101, 1037, 4937, 1012, 1037, 3899, 1012, 102], [101, 4937, 1012, 3899, 1012, 4937, 1012, 102]

    def inputs(words: list[int], size: int) -> dict[str, Any]:
        mask = torch.zeros(1, 160, 224).long()
        mask[:, :, :size] = 1
        ids = torch.tensor([words])
        text = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        return {"pixel_values": torch.randn(1, 3, 160, 224), "pixel_mask": mask, **text}

    return transformers.GroundingDinoForObjectDetection(config), [inputs(two, 224), inputs(three, 160)]


def clap() -> Built:
    """Fusion is on; the second clip is not longer than one window."""
    config = transformers.ClapConfig(
        text_config={"vocab_size": VOCABULARY, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
                     "intermediate_size": 48},
        audio_config={"enable_fusion": True}, projection_dim=24,
    )  # fmt: skip
    bands = config.audio_config.num_mel_bins

    def inputs(longer: bool) -> dict[str, Any]:
        sound = {"input_features": torch.randn(1, 4, 1001, bands), "is_longer": torch.tensor([[longer]])}
        return {"input_ids": tokens(1, 6), "attention_mask": torch.ones(1, 6).long(), **sound}

    return transformers.ClapModel(config), [inputs(longer=True), inputs(longer=False)]


def chronos_bolt() -> Built:
    """Needs chronos-forecasting."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    config = transformers.T5Config(
        vocab_size=2, d_model=24, d_kv=12, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=2,
        is_encoder_decoder=True, pad_token_id=0, decoder_start_token_id=0, reg_token_id=1,
    )  # fmt: skip
    config.chronos_config = {
        "context_length": 64, "prediction_length": 16, "input_patch_size": 16, "input_patch_stride": 16,
        "use_reg_token": True, "quantiles": [0.1, 0.5, 0.9],
    }  # fmt: skip
    return ChronosBoltModelForForecasting(config), twice(lambda: {"context": torch.randn(1, 64)})


def longformer() -> Built:
    """The second inputs have padding and a token with global attention, which are branches of their own."""
    config = transformers.LongformerConfig(
        vocab_size=VOCABULARY, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=128, attention_window=8,
    )  # fmt: skip

    def inputs(mask: list[int]) -> dict[str, Any]:
        return {"input_ids": tokens(1, 19), "attention_mask": torch.tensor([mask])}

    return transformers.LongformerModel(config), [inputs([1] * 19), inputs([2] + [1] * 12 + [0] * 6)]


def bart() -> Built:
    return half_with_mask("BartForConditionalGeneration", "BartConfig")


def marian() -> Built:
    return half_with_mask("MarianMTModel", "MarianConfig", pad_token_id=1, decoder_start_token_id=1)


def gated_t5() -> Built:
    return t5(gated=True, tied=False)


#: row: (builder, breaks in the paper, breaks left by the authors' tool); rows of one builder share a measurement
ROWS: dict[str, tuple[Callable[[], Built], int, int]] = {
    "t5-small": (t5, 3, 0), "t5-base": (t5, 3, 0), "t5-3b": (t5, 3, 0), "flan-t5-large": (gated_t5, 3, 0),
    "inclusively-reformulation-it5": (gated_t5, 3, 0), "whisper": (whisper, 3, 0), "whisper-small": (whisper, 3, 0),
    "whisper-base": (whisper, 3, 0), "bart-large-cnn": (bart, 7, 0), "bart-base": (bart, 7, 0),
    "rebel-large": (bart, 7, 0), "opus-mt-fr-en": (marian, 6, 0), "biogpt": (biogpt, 2, 0),
    "blenderbot-400M-distill": (blenderbot, 3, 0), "PegasusForCausalLM": (pegasus, 2, 0),
    "layoutlmv3-base": (layoutlmv3, 2, 0), "Phi-4-mini-instruct": (phi3_longrope, 5, 0),
    "grounding-dino-tiny": (grounding_dino, 17, 7), "grounding-dino-base": (grounding_dino, 17, 7),
    "longformer-base-4096": (longformer, 5, 3), "clap-htsat-fused": (clap, 4, 4),
    "chronos-bolt-small": (chronos_bolt, 6, 0),
}  # fmt: skip
#: packages besides transformers that a row's code comes from
NEEDS = {"chronos-bolt-small": "chronos"}
