"""A trainer for all models."""
import argparse
import time

import torch
import torch.nn as nn

from models.config import GPTConfig, MoEConfig
from models.gpt import GPT
from models.moe import MoE
from models.vae import VAE


class EMA(nn.Module):
    def __init__(self, model, decay=0.999):
        super().__init__()
        self.model = model
        self.decay = decay

    def forward(self, x):
        return self.model(x)


class Trainer:
    def __init__(self, model, lr=3e-4, clip=1.0, device="cpu"):
        self.model = torch.compile(model.to(device))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.clip = clip
        self.step = 0

    def train_step(self, x, y):
        logits, loss = self.model(x, y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        self.step += 1
        if self.step % 10 == 0:
            print(f"step {self.step} loss {loss.item():.4f} norm {norm.item():.2f}")
        return loss


@torch.compile
def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mix)
    grad = torch.autograd.grad(score.sum(), mix, create_graph=True)[0]
    start = time.time()
    penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()
    print("penalty took", time.time() - start)
    return penalty


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt")
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args()
    if args.model == "gpt":
        config = GPTConfig(block_size=64, vocab_size=256, n_layer=2, n_head=4, n_embd=64)
        trainer = Trainer(GPT(config))
        for _ in range(20):
            x = torch.randint(0, 256, (args.batch_size, 64))
            trainer.train_step(x, x)
    elif args.model == "moe":
        moe = MoE(MoEConfig(dim=32, hidden=64, n_experts=4)).to("cpu")
        moe = torch.compile(moe)
        print(moe(torch.randn(args.batch_size, 16, 32)).shape)
    else:
        vae = torch.compile(VAE(verbose=False))
        out, mu, logvar, kl = vae(torch.rand(args.batch_size, 784))
        print(kl)


if __name__ == "__main__":
    main()
