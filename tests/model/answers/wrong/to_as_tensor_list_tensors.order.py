@torch.compile
def case(a, b):
    return torch.stack([b, a]) + 1
