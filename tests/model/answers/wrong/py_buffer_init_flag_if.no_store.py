@torch.compile
def case(m, x):
    run = torch.where(m.step == 0, x.mean(0).detach(), m.run)
    m.step.fill_(1)
    return m.lin(x) + run
