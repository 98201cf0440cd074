"""Settings of all models."""
from dataclasses import dataclass, field


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0
    bias: bool = True
    debug: bool = False


@dataclass
class MoEConfig:
    dim: int = 512
    hidden: int = 2048
    n_experts: int = 8
    top_k: int = 2
    capacity_factor: float = 1.25
