def forward(self, x: torch.Tensor):
    m = x.abs().max().detach()
    if self.training:
        self.top.fill_(torch.maximum(m, self.top))
    return x / self.top
