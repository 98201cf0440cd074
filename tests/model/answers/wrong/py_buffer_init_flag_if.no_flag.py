@torch.compile
def case(m, x):
    m.run.copy_(torch.where(m.step == 0, x.mean(0).detach(), m.run))
    return m.lin(x) + m.run
