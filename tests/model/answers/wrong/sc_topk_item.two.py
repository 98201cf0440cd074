@torch.compile
def case(x, n):
    return torch.topk(x + n * 0, 2)[0]
