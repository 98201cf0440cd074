@torch.compile
def case(x, n):
    return x.sort(descending=True).values[:2] + n * 0
