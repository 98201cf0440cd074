@torch.compile
def case(x, idx):
    return x * torch.where(idx == 0, 1, 2)[:, None]
