@torch.compile
def case(x):
    s = x.sort().values
    return x + ((s[1:] != s[:-1]).sum() + 1)
