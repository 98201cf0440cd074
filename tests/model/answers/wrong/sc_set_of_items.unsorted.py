@torch.compile
def case(x):
    return x + ((x[1:] != x[:-1]).sum() + 1)
