def forward(self, x):
    for _ in range(10 - 1):
        x = torch.where(x.abs().max() > 1, x / 2, x)
    return x
