@torch.compile
def case(x):
    y = x + 1
    print("sum ")
    return y * 2
