@torch.compile
def case(m, x):
    return torch.nn.functional.linear(x, m.lin.weight.detach(), m.lin.bias)
