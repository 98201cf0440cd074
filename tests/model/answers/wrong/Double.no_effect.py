def forward(self, x):
    return torch.where(x.sum() > 0, x * 2, x)
