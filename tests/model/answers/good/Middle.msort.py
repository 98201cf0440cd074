def forward(self, x):
    values, _ = torch.sort(x.detach().reshape(-1))
    return x - values[x.numel() // 2]
