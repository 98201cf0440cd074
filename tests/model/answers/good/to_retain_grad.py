@torch.compile
def case(x):
    y = x * 2
    return y.sum()
