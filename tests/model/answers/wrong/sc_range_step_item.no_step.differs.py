@torch.compile
def case(x, n):
    for i in range(4):
        x = torch.where((n > 0) & (i % n == 0), x + i, x)
    return x
