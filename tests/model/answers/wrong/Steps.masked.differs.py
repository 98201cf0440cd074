def forward(self, x, steps):
    rows = []
    for i, row in enumerate(x):
        for k in range(4):
            row = torch.where(k < steps[i], torch.tanh(self.cell(row)), row)
        rows.append(row)
    return torch.stack(rows)
