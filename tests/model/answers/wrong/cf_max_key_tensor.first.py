@torch.compile
def case(ts):
    best = ts[0]
    return best + 1
