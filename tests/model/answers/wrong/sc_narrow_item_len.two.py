@torch.compile
def case(x, n):
    return x[:2] + 1 + n * 0
