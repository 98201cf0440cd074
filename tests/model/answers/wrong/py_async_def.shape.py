@torch.compile
def case(x):
    return (x + 1).unsqueeze(0)
