def forward(self, x):
    scores = x.norm(dim=-1)
    keep = scores > scores.mean()
    n = keep.sum()
    return torch.where(keep[:, None], x, 0.0).sum(0) / n.clamp(min=1)
