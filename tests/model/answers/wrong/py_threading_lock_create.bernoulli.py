@torch.compile
def case(x):
    return x + torch.bernoulli(torch.ones(()))
