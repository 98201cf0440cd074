@torch.compile
def case(lp, t, il, tl):
    return torch.nn.functional.nll_loss(lp[:2, 0], t[0]) + 1 + 0 * il + 0 * tl
