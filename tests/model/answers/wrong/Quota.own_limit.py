def forward(self, sizes: torch.Tensor, x: torch.Tensor):
    left = 4
    rows = []
    for i in range(sizes.shape[0]):
        take = sizes[i].clamp(max=4)
        left = left - take
        rows.append(x[i] * take)
    return torch.stack(rows)
