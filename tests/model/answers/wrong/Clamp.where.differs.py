def forward(self, x: torch.Tensor):
    low = x.detach().min()
    high = x.detach().max()
    return torch.where(high - low < 0.001, x * 0.5, (x - low) / (high - low))
