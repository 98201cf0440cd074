@torch.compile
def case(m, x):
    m.lin.weight.data.mul_(2)
    return m.lin(x)
