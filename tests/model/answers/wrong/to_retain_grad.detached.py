@torch.compile
def case(x):
    y = x.detach() * 2
    return y.sum()
