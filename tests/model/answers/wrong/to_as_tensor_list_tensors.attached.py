@torch.compile
def case(a, b):
    return torch.stack([a, b]).requires_grad_() + 1
