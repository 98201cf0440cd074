@torch.compile
def case(m, x):
    first = m.step == 0
    run = torch.where(first, x.mean(0), m.run)
    m.run.copy_(run.detach())
    m.step.fill_(1)
    return m.lin(x) + run
