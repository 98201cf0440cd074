@torch.compile
def case(x):
    return x + True
