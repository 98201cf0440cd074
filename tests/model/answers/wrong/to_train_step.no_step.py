@torch.compile
def case(m, o, x):
    o.zero_grad()
    loss = m.lin(x).sum()
    return loss.detach()
