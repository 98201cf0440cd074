@torch.compile
def case(x, n):
    for i in range(4):
        x = x + torch.where(i % n == 0, i, 0)
    return x
