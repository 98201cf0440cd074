def forward(self, x: torch.Tensor):
    m = x.abs().max().detach()
    if self.training:
        self.top.fill_(m)
    return x / self.top
