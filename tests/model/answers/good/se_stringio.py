@torch.compile
def case(x):
    return x + len("a")
