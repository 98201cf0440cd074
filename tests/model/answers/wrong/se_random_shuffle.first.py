@torch.compile
def case(x):
    l = [1, 2, 3]
    return x + l[0]
