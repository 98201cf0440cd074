def forward(self, x: torch.Tensor):
    low = x.detach().min()
    high = x.detach().max()
    return (x - low) / (high - low).clamp(min=0.001)
