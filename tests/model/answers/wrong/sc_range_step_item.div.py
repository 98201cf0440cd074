@torch.compile
def case(x, n):
    return x + 4 // n
