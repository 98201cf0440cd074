def forward(self, ids):
    flat = ids.flatten()
    same = flat.unsqueeze(0) == flat.unsqueeze(1)
    w = same.float().sum(1).reshape(ids.shape)
    return self.table(ids) / w.unsqueeze(-1)
