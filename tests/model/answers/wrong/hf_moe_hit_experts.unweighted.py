@torch.compile
def case(x, idx):
    return x * (idx[:, None] * 0 + 1)
