@torch.compile
def case(x):
    s = x.sort().values
    different = (s[1:] != s[:-1]).sum()
    return x + (different + (s.shape[0] > 0))
