def forward(self, x, mask):
    mask = mask.bool()
    n = mask.sum()
    mean = torch.where(mask[:, None], x, 0.0).sum(0) / n.clamp(min=1)
    self.mean.copy_(torch.where(n > 0, 0.9 * self.mean + 0.1 * mean.detach(), self.mean))
    return x - self.mean
