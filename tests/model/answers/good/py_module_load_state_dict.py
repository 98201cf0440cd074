@torch.compile
def case(m, x):
    return m.lin(x)
