def forward(self, x, steps):
    rows = []
    for row, n in zip(x, steps):
        for k in range(4):
            row = torch.where(n > k, torch.tanh(self.cell(row)), row)
        rows.append(row)
    return torch.stack(rows)
