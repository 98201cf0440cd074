def forward(self, x: torch.Tensor):
    n = x.detach().norm()
    return x / n.clamp(min=1e-8)
