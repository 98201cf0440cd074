@torch.compile
def case(x):
    return (x + 1).requires_grad_()
