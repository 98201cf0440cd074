"""Seeded models for rows of the paper's table: what decides a break (kinds of layers, precision, inputs) is kept, sizes
are not. Needs torch and transformers 4.52.4, no download.

A builder gives the model, in a size, and two sets of inputs; the second has other values of the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers

Built = tuple[Any, list[dict[str, Any]]]


class Size(NamedTuple):
    """What a model of one row and its inputs are scaled by."""

    width: int = 32
    heads: int = 2
    layers: int = 2
    length: int = 7
    """Tokens that go in."""
    answer: int = 4
    """Tokens that a decoder beside an encoder is given."""
    batch: int = 1
    vocabulary: int = 96

    @property
    def inner(self) -> int:
        return 2 * self.width

    def tokens(self, *shape: int) -> torch.Tensor:
        return torch.randint(5, self.vocabulary, shape)

    def ids(self) -> torch.Tensor:
        return self.tokens(self.batch, self.length)


#: so small that nearly all of a call is what it costs beside its arithmetic
TINY = Size()
#: arithmetic rules, and one core of a CPU compiles and calls it within minutes
MIDDLE = Size(width=256, heads=4, layers=2, length=128, answer=64, batch=2, vocabulary=2048)
#: for a device
LARGE = Size(width=1024, heads=16, layers=6, length=512, answer=128, batch=4, vocabulary=32000)
SIZES = {"tiny": TINY, "middle": MIDDLE, "large": LARGE}


def twice(make: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
    return [make(), make()]


def t5(size: Size = TINY, *, gated: bool = False, tied: bool = True) -> Built:
    config = transformers.T5Config(
        vocab_size=size.vocabulary, d_model=size.width, d_kv=size.width // size.heads, d_ff=size.inner,
        num_layers=size.layers, num_heads=size.heads, tie_word_embeddings=tied,
        feed_forward_proj="gated-gelu" if gated else "relu",
    )  # fmt: skip
    batch = 2 * size.batch
    inputs = twice(
        lambda: {"input_ids": size.tokens(batch, size.length), "decoder_input_ids": size.tokens(batch, size.answer)}
    )
    return transformers.T5ForConditionalGeneration(config), inputs


def _encoder_decoder(size: Size) -> dict[str, Any]:
    return {
        "vocab_size": size.vocabulary, "d_model": size.width, "encoder_layers": size.layers,
        "decoder_layers": size.layers, "encoder_attention_heads": size.heads, "decoder_attention_heads": size.heads,
        "encoder_ffn_dim": size.inner, "decoder_ffn_dim": size.inner, "max_position_embeddings": 6 + 6 * size.length,
    }  # fmt: skip


def _stack(size: Size) -> dict[str, Any]:
    """The settings that encoders and decoders alone have in common."""
    return {
        "vocab_size": size.vocabulary, "hidden_size": size.width, "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads, "intermediate_size": size.inner,
    }  # fmt: skip


def half_with_mask(size: Size, name: str, config_name: str, **extra: Any) -> Built:
    """fp16, a mask, one decoder token: as the authors ran these rows."""
    config = getattr(transformers, config_name)(**_encoder_decoder(size), **extra)
    model = getattr(transformers, name)(config).half()
    shape = (2 * size.batch, size.length)

    def inputs() -> dict[str, Any]:
        start = torch.full((shape[0], 1), config.decoder_start_token_id)
        mask = torch.ones(shape).long()
        return {"input_ids": size.tokens(*shape), "attention_mask": mask, "decoder_input_ids": start}

    return model, twice(inputs)


def whisper(size: Size = TINY) -> Built:
    sizes = {k: v for k, v in _encoder_decoder(size).items() if k != "max_position_embeddings"}
    places = 3 * size.length - 1
    config = transformers.WhisperConfig(
        **sizes, num_mel_bins=8, max_source_positions=places, max_target_positions=6 * size.answer, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip

    def inputs() -> dict[str, Any]:
        sound = torch.randn(size.batch, 8, 2 * places)
        return {"input_features": sound, "decoder_input_ids": size.tokens(size.batch, size.answer)}

    return transformers.WhisperForConditionalGeneration(config), twice(inputs)


def blenderbot(size: Size = TINY) -> Built:
    model = transformers.BlenderbotForConditionalGeneration(transformers.BlenderbotConfig(**_encoder_decoder(size)))
    inputs = twice(lambda: {"input_ids": size.ids(), "decoder_input_ids": size.tokens(size.batch, size.answer)})
    return model, inputs


def pegasus(size: Size = TINY) -> Built:
    model = transformers.PegasusForCausalLM(transformers.PegasusConfig(**_encoder_decoder(size)))
    return model, twice(lambda: {"input_ids": size.ids()})


def biogpt(size: Size = TINY) -> Built:
    config = transformers.BioGptConfig(**_stack(size), max_position_embeddings=6 + 6 * size.length)
    return transformers.BioGptForCausalLM(config), twice(lambda: {"input_ids": size.ids()})


def phi3_longrope(size: Size = TINY) -> Built:
    """The second inputs stand past the original length, which is the other side of its branch."""
    pairs = size.width // size.heads // 2
    config = transformers.Phi3Config(
        **_stack(size), num_key_value_heads=size.heads, max_position_embeddings=8 + 8 * size.length,
        original_max_position_embeddings=2 + 2 * size.length, pad_token_id=0,
        rope_scaling={"type": "longrope", "short_factor": [1.0] * pairs, "long_factor": [4.0] * pairs},
    )  # fmt: skip
    places = torch.arange(size.length)[None]
    inputs = [{"input_ids": size.ids(), "position_ids": places + shift} for shift in (0, 3 * size.length - 1)]
    return transformers.Phi3ForCausalLM(config), inputs


def layoutlmv3(size: Size = TINY) -> Built:
    config = transformers.LayoutLMv3Config(
        **_stack(size), max_position_embeddings=6 + 6 * size.length, coordinate_size=size.width // 8,
        shape_size=size.width // 4, input_size=32, patch_size=16, visual_embed=False,
    )  # fmt: skip

    def inputs() -> dict[str, Any]:
        boxes = torch.randint(500, (size.batch, size.length, 2)).repeat(1, 1, 2)
        return {"input_ids": size.ids(), "bbox": boxes}

    return transformers.LayoutLMv3Model(config), twice(inputs)


def grounding_dino(size: Size = TINY) -> Built:
    """All of its layers and levels, which decide what breaks; the words are those of a caption in BERT's vocabulary."""
    config = transformers.GroundingDinoConfig(
        backbone_config=transformers.SwinConfig(
            image_size=224, window_size=7, embed_dim=size.width // 2, depths=[2, 2, 6, 2], num_heads=[1, 1, 2, 2],
            out_indices=[2, 3, 4],
        ),
        text_config=transformers.BertConfig(**_stack(size) | {"vocab_size": 30522}),
        use_timm_backbone=False, d_model=size.width, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=size.heads, decoder_attention_heads=size.heads, encoder_ffn_dim=size.inner,
        decoder_ffn_dim=size.inner, num_queries=100,
    )  # fmt: skip
    two, three = [101, 1037, 4937, 1012, 1037, 3899, 1012, 102], [101, 4937, 1012, 3899, 1012, 4937, 1012, 102]

    def inputs(words: list[int], seen: int) -> dict[str, Any]:
        mask = torch.zeros(1, 160, 224).long()
        mask[:, :, :seen] = 1
        ids = torch.tensor([words])
        text = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        return {"pixel_values": torch.randn(1, 3, 160, 224), "pixel_mask": mask, **text}

    return transformers.GroundingDinoForObjectDetection(config), [inputs(two, 224), inputs(three, 160)]


def clap(size: Size = TINY) -> Built:
    """Fusion is on; the second clip is not longer than one window."""
    config = transformers.ClapConfig(
        text_config={**_stack(size), "num_hidden_layers": size.layers // 2},
        audio_config={"enable_fusion": True}, projection_dim=size.width,
    )  # fmt: skip
    bands = config.audio_config.num_mel_bins

    def inputs(longer: bool) -> dict[str, Any]:
        sound = {"input_features": torch.randn(1, 4, 1001, bands), "is_longer": torch.tensor([[longer]])}
        ids = size.tokens(1, size.length - 1)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **sound}

    return transformers.ClapModel(config), [inputs(longer=True), inputs(longer=False)]


def chronos_bolt(size: Size = TINY) -> Built:
    """Needs chronos-forecasting."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    config = transformers.T5Config(
        vocab_size=2, d_model=size.width, d_kv=size.width // size.heads, d_ff=size.inner, num_layers=size.layers,
        num_decoder_layers=size.layers, num_heads=size.heads, is_encoder_decoder=True, pad_token_id=0,
        decoder_start_token_id=0, reg_token_id=1,
    )  # fmt: skip
    patches = size.length // 2 + 1
    config.chronos_config = {
        "context_length": 16 * patches, "prediction_length": 16, "input_patch_size": 16, "input_patch_stride": 16,
        "use_reg_token": True, "quantiles": [0.1, 0.5, 0.9],
    }  # fmt: skip
    inputs = twice(lambda: {"context": torch.randn(size.batch, 16 * patches)})
    return ChronosBoltModelForForecasting(config), inputs


def longformer(size: Size = TINY) -> Built:
    """The second inputs have padding and a token with global attention, which are branches of their own."""
    config = transformers.LongformerConfig(
        **_stack(size), max_position_embeddings=16 + 16 * size.length, attention_window=size.length // 2 * 2 + 2
    )
    length = 5 + 2 * size.length  # no multiple of the window

    def inputs(mask: list[int]) -> dict[str, Any]:
        return {"input_ids": size.tokens(1, length), "attention_mask": torch.tensor([mask])}

    padded = [2] + [1] * (length - 1 - length // 3) + [0] * (length // 3)
    return transformers.LongformerModel(config), [inputs([1] * length), inputs(padded)]


def bart(size: Size = TINY) -> Built:
    return half_with_mask(size, "BartForConditionalGeneration", "BartConfig")


def marian(size: Size = TINY) -> Built:
    return half_with_mask(size, "MarianMTModel", "MarianConfig", pad_token_id=1, decoder_start_token_id=1)


def gated_t5(size: Size = TINY) -> Built:
    return t5(size, gated=True, tied=False)


#: row: (builder, breaks in the paper, breaks left by the authors' tool); rows of one builder share a measurement
ROWS: dict[str, tuple[Callable[..., Built], int, int]] = {
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
