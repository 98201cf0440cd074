def forward(self, x, lengths):
    ends = lengths.cumprod(0)
    owner = (torch.arange(x.shape[0], device=x.device)[:, None] >= ends[None, :]).sum(1)
    mine = owner[None, :] == torch.arange(lengths.shape[0], device=x.device)[:, None]
    return torch.where(mine[:, :, None], x[None], 0.0).sum(1)
