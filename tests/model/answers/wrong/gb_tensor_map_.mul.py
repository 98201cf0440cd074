@torch.compile
def case(x):
    y = x.clone()
    return y.mul_(x)
