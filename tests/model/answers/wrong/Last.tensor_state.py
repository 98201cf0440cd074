def forward(self, x, scale):
    self.last = scale
    return torch.where(scale % 2 == 0, x * scale, x + scale)
