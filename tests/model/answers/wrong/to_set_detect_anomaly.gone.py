@torch.compile
def case(x):
    y = x + 1
    return y
