@torch.compile
def case(x):
    y = x + 1
    if x.shape[0] > 1000:
        return y
    return y * 2
