"""Seeded models of today, by what they are: decoders with a mixture of experts, models of pictures and text, of
speech, of things in pictures, and encoders. Needs torch and transformers 4.52.4, no download.

A builder gives the model, in a size, and two sets of inputs; the second has other values of the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from paper_models import TINY, Built, Size, twice


def _decoder(size: Size) -> dict[str, Any]:
    return {
        "vocab_size": size.vocabulary, "hidden_size": size.width, "intermediate_size": size.inner,
        "num_hidden_layers": size.layers, "num_attention_heads": size.heads, "num_key_value_heads": size.heads // 2,
        "max_position_embeddings": 8 * size.length, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip


def _padded(size: Size) -> Callable[[], dict[str, Any]]:
    """Token ids and their mask; in the first row the last quarter is padding."""

    def inputs() -> dict[str, Any]:
        mask = torch.ones(size.batch, size.length).long()
        mask[0, size.length - size.length // 4 :] = 0
        return {"input_ids": size.ids(), "attention_mask": mask}

    return inputs


def mixtral(size: Size = TINY) -> Built:
    config = transformers.MixtralConfig(**_decoder(size), num_local_experts=4, num_experts_per_tok=2)
    return transformers.MixtralForCausalLM(config), twice(_padded(size))


def qwen3_moe(size: Size = TINY) -> Built:
    config = transformers.Qwen3MoeConfig(
        **_decoder(size), head_dim=size.width // size.heads, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=size.width,
    )  # fmt: skip
    return transformers.Qwen3MoeForCausalLM(config), twice(_padded(size))


def deepseek_v3(size: Size = TINY) -> Built:
    head = size.width // size.heads
    config = transformers.DeepseekV3Config(
        **_decoder(size) | {"num_key_value_heads": size.heads}, n_routed_experts=4, num_experts_per_tok=2, n_group=2,
        topk_group=1, n_shared_experts=1, first_k_dense_replace=1, moe_intermediate_size=size.width,
        q_lora_rank=size.width // 2, kv_lora_rank=size.width // 2, qk_rope_head_dim=head // 2,
        qk_nope_head_dim=head // 2, v_head_dim=head,
    )  # fmt: skip
    return transformers.DeepseekV3ForCausalLM(config), twice(_padded(size))


def _pictures(size: Size) -> int:
    """The side of a picture, in pixels: as many patches as there are tokens, or a few more."""
    return 14 * max(4, 2 * round(size.length**0.5 / 2))


def qwen2_5_vl(size: Size = TINY) -> Built:
    """One picture in a text, of as many patches each time."""
    first = size.vocabulary - 6
    names = ("vision_start_token_id", "vision_end_token_id", "vision_token_id", "image_token_id", "video_token_id")
    marks = {name: first + number for number, name in enumerate(names)}
    pairs = size.width // size.heads // 2
    config = transformers.Qwen2_5_VLConfig(
        **_decoder(size) | {"eos_token_id": 2}, **marks,
        rope_scaling={"type": "mrope", "mrope_section": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]},
        vision_config={
            "depth": size.layers, "hidden_size": size.width, "intermediate_size": size.inner, "num_heads": size.heads,
            "out_hidden_size": size.width, "patch_size": 14, "fullatt_block_indexes": [size.layers - 1],
            "window_size": 112,
        },
    )  # fmt: skip
    side = _pictures(size) // 14
    patch = 3 * 2 * 14 * 14

    def inputs() -> dict[str, Any]:
        words = torch.randint(5, first, (1, size.length))
        seen = torch.full((1, side * side // 4), marks["image_token_id"])
        edges = [torch.tensor([[marks[name]]]) for name in names[:2]]
        ids = torch.cat([words[:, :3], edges[0], seen, edges[1], words[:, 3:]], 1)
        grid = torch.tensor([[1, side, side]])
        pixels = torch.randn(side * side, patch)
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "pixel_values": pixels,
            "image_grid_thw": grid,
        }

    return transformers.Qwen2_5_VLForConditionalGeneration(config), twice(inputs)


def smolvlm(size: Size = TINY) -> Built:
    """A picture of its own size, in a text that has a place for each of the picture's patches."""
    side, picture = _pictures(size), size.vocabulary - 1
    config = transformers.SmolVLMConfig(
        vision_config={
            "hidden_size": size.width, "intermediate_size": size.inner, "num_hidden_layers": size.layers,
            "num_attention_heads": size.heads, "image_size": side, "patch_size": 14,
        },
        text_config=transformers.LlamaConfig(**_decoder(size)), image_token_id=picture, scale_factor=2, pad_token_id=0,
    )  # fmt: skip
    places = (side // 28) ** 2

    def inputs() -> dict[str, Any]:
        words = torch.randint(5, picture, (size.batch, size.length))
        ids = torch.cat([torch.full((size.batch, places), picture), words], 1)
        pixels = torch.randn(size.batch, 1, 3, side, side)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": pixels}

    return transformers.SmolVLMForConditionalGeneration(config), twice(inputs)


def qwen2_audio(size: Size = TINY) -> Built:
    """A sound in a text that has a place for each of the sound's frames."""
    frames, sound = size.length - size.length % 4, size.vocabulary - 1
    text = {key: value for key, value in _decoder(size).items() if not key.endswith("_token_id")}
    config = transformers.Qwen2AudioConfig(
        audio_config={
            "d_model": size.width, "encoder_layers": size.layers, "encoder_attention_heads": size.heads,
            "encoder_ffn_dim": size.inner, "num_mel_bins": 16, "max_source_positions": 2 * frames,
        },
        text_config={"model_type": "qwen2", **text}, audio_token_index=sound,
    )  # fmt: skip

    def inputs() -> dict[str, Any]:
        words = torch.randint(5, sound, (size.batch, size.length))
        places = torch.full((size.batch, frames), sound)
        ids = torch.cat([words[:, :3], places, words[:, 3:]], 1)
        heard = torch.randn(size.batch, 16, 4 * frames)
        masks = {
            "attention_mask": torch.ones_like(ids),
            "feature_attention_mask": torch.ones(size.batch, 4 * frames).long(),
        }
        return {"input_ids": ids, "input_features": heard, **masks}

    return transformers.Qwen2AudioForConditionalGeneration(config), twice(inputs)


def moonshine(size: Size = TINY) -> Built:
    config = transformers.MoonshineConfig(
        vocab_size=size.vocabulary, hidden_size=size.width, intermediate_size=size.inner,
        encoder_num_hidden_layers=size.layers, decoder_num_hidden_layers=size.layers,
        encoder_num_attention_heads=size.heads, decoder_num_attention_heads=size.heads,
        max_position_embeddings=8 * size.length, pad_token_id=0,
    )  # fmt: skip

    def inputs() -> dict[str, Any]:
        samples = 1000 + 384 * size.length
        sound = {
            "input_values": torch.randn(size.batch, samples),
            "attention_mask": torch.ones(size.batch, samples).long(),
        }
        return {**sound, "decoder_input_ids": size.tokens(size.batch, size.answer)}

    return transformers.MoonshineForConditionalGeneration(config), twice(inputs)


def deformable_detr(size: Size = TINY) -> Built:
    """In two stages; the second picture has a margin that is masked."""
    config = transformers.DeformableDetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=transformers.ResNetConfig(
            embedding_size=size.width // 4, hidden_sizes=[size.width // 4 * 2**stage for stage in range(4)],
            depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"],
        ),
        d_model=size.width, encoder_layers=size.layers, decoder_layers=size.layers, encoder_ffn_dim=size.inner,
        decoder_ffn_dim=size.inner, encoder_attention_heads=size.heads, decoder_attention_heads=size.heads,
        num_queries=50, two_stage_num_proposals=50, two_stage=True, with_box_refine=True,
    )  # fmt: skip

    def inputs(seen: int) -> dict[str, Any]:
        mask = torch.zeros(1, 192, 256).long()
        mask[:, :, :seen] = 1
        return {"pixel_values": torch.randn(1, 3, 192, 256), "pixel_mask": mask}

    return transformers.DeformableDetrForObjectDetection(config), [inputs(256), inputs(160)]


def sam(size: Size = TINY) -> Built:
    """What a point in a picture belongs to."""
    side = 16 * 8
    config = transformers.SamConfig(
        vision_config={
            "hidden_size": size.width, "output_channels": size.width, "num_hidden_layers": size.layers,
            "num_attention_heads": size.heads, "image_size": side, "patch_size": 16, "window_size": 4,
            "global_attn_indexes": [size.layers - 1], "mlp_dim": size.inner, "num_pos_feats": size.width // 2,
        },
        prompt_encoder_config={"hidden_size": size.width, "image_size": side, "patch_size": 16},
        mask_decoder_config={
            "hidden_size": size.width, "mlp_dim": size.inner, "num_attention_heads": size.heads,
            "iou_head_hidden_dim": size.width,
        },
    )  # fmt: skip

    def inputs() -> dict[str, Any]:
        return {"pixel_values": torch.randn(1, 3, side, side), "input_points": side * torch.rand(1, 1, 1, 2)}

    return transformers.SamModel(config), twice(inputs)


def modernbert(size: Size = TINY) -> Built:
    settings = {key: value for key, value in _decoder(size).items() if key != "num_key_value_heads"}
    config = transformers.ModernBertConfig(
        **settings, cls_token_id=1, sep_token_id=2, local_attention=size.length // 2 * 2
    )
    return transformers.ModernBertForMaskedLM(config), twice(_padded(size))


#: row: builder
TODAY: dict[str, Callable[..., Built]] = {
    "mixtral": mixtral, "qwen3-moe": qwen3_moe, "deepseek-v3": deepseek_v3, "qwen2.5-vl": qwen2_5_vl,
    "smolvlm": smolvlm, "qwen2-audio": qwen2_audio, "moonshine": moonshine, "deformable-detr": deformable_detr,
    "sam": sam, "modernbert": modernbert,
}  # fmt: skip
