@torch.compile
def case(x):
    return x.int() + True
