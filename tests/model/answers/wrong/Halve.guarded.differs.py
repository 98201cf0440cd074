def forward(self, x):
    n = 0
    while n < 10:
        x = torch.where(x.abs().max() > 1, x / 2, x)
        n += 1
    return x
