@torch.compile
def case(x):
    return (x * x).sum()
