"""A convolution-free VAE."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, in_dim, hidden, latent):
        super().__init__()
        self.fc = nn.Linear(in_dim, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)

    def forward(self, x):
        h = F.relu(self.fc(x))
        assert not torch.isnan(h).any(), "encoder produced NaN"
        return self.mu(h), self.logvar(h)


class VAE(nn.Module):
    def __init__(self, in_dim=784, hidden=400, latent=20, beta=1.0, verbose=True):
        super().__init__()
        self.encoder = Encoder(in_dim, hidden, latent)
        self.dec1 = nn.Linear(latent, hidden)
        self.dec2 = nn.Linear(hidden, in_dim)
        self.beta = beta
        self.verbose = verbose

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encoder(x.view(x.size(0), -1))
        assert mu.shape == logvar.shape
        assert (logvar < 50).all(), f"logvar out of range: {logvar.max().item()}"
        z = self.reparameterize(mu, logvar)
        out = torch.sigmoid(self.dec2(F.relu(self.dec1(z))))
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        if self.verbose:
            print(f"kl {kl.item():.4f}")
        if kl > 1e6:
            print(f"step {x.size(0)}: KL is very large, consider lowering beta (now {self.beta}), kl = {kl}")
            kl = kl.clamp(max=1e6)
        return out, mu, logvar, self.beta * kl
