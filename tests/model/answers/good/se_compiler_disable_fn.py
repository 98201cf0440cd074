@torch.compile
def case(x):
    return (x + 1) * 2 * 2
