def forward(self, x):
    m = x.detach().flatten().sort().values[x.numel() // 2]
    return x - m
