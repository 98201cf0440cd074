@torch.compile
def case(x, n):
    return x[:3] + 1 + 0 * n
