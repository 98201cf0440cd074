@torch.compile
def case(m, x):
    first = m.step >= 0
    m.run.copy_(torch.where(first, x.mean(0).detach(), m.run))
    m.step.copy_(torch.where(first, 1, m.step))
    return m.lin(x) + m.run
