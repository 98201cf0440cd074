def forward(self, x: torch.Tensor, top: float = 0.5):
    keep = x.max(-1, keepdim=True).values > top
    return torch.where(keep, x - x.mean(-1, keepdim=True), x)
