def forward(self, x: torch.Tensor):
    low = x.min()
    high = x.max()
    return torch.where(high - low < 0.001, x * 0.5, (x - low) / (high - low))
