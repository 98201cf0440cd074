def forward(self, x: torch.Tensor):
    low = x.detach().min()
    high = x.detach().max()
    return torch.where(high - low < 0.001, x * 0.0, (x - low) / (high - low))
