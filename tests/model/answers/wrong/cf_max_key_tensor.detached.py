@torch.compile
def case(ts):
    best = ts[0]
    for t in ts[1:]:
        best = torch.where(t.sum() > best.sum(), t, best)
    return best.detach() + 1
