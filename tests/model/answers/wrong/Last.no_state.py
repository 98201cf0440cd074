def forward(self, x, scale):
    return torch.where(scale % 2 == 0, x * scale, x + scale)
