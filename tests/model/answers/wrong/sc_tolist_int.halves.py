@torch.compile
def case(n, x):
    return torch.split(x + 0 * n[0], [1, 2])
