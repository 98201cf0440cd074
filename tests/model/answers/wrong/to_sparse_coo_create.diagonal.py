@torch.compile
def case(i, v):
    return torch.stack([torch.stack([v[0] * 0, v[0]]), torch.stack([v[1], v[1] * 0])]) + 1 + i[0, 0] * 0
