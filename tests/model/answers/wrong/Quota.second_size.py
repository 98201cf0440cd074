def forward(self, sizes: torch.Tensor, x: torch.Tensor):
    left = torch.full_like(sizes[1], 4)
    rows = []
    for i in range(sizes.shape[0]):
        take = torch.minimum(sizes[i], left)
        left = left - take
        rows.append(x[i] * take)
    return torch.stack(rows)
