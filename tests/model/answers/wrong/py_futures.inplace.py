@torch.compile
def case(x):
    return x.add_(1)
