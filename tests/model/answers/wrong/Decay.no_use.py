def forward(self, x: torch.Tensor, use: bool = True):
    h = self.lin(x)
    k = (h > 0).sum()
    h = torch.where((k > h.numel() // 2) & (use is not None), h * self.rate ** k.double(), h + 1)
    return h
