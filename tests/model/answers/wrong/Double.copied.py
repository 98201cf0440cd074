def forward(self, x):
    x.mul_(torch.where(x.sum() > 0, 2, 1))
    return x.clone()
