@torch.compile
def case(a, b):
    n = b.shape[0] - a.shape[0]
    return torch.stack([torch.nn.functional.pad(a.detach(), (0, n)), b.detach()])
