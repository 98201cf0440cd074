@torch.compile
def case(x):
    y = x.clone()
    y += x
    return y
