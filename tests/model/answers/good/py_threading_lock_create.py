@torch.compile
def case(x):
    return x + 1
