def forward(self, x: torch.Tensor, use: bool = True):
    h = self.lin(x)
    k = (h > 0).sum()
    if use:
        h = torch.where(k > h.numel() // 2, h * self.rate ** (k // 2), h + 1)
    else:
        h = h + 1
    return h
