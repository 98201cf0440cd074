@torch.compile
def case(x, n):
    return torch.where(torch.arange(x.shape[0]) < n, x, 0) + 1
