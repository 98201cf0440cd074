def forward(self, x: torch.Tensor):
    m = x.abs().max().detach()
    if self.training is not None:
        self.top.fill_(torch.where(m > self.top, m, self.top))
    return x / self.top
