@torch.compile
def case(x):
    if x.is_cuda:
        return x
    return x.reshape(x.numel())
