@torch.compile
def case(m, x):
    m.run.copy_(x.mean(0).detach() + m.step)
    m.step.fill_(1)
    return m.lin(x) + m.run
