@torch.compile
def case(i, v):
    dense = v.new_zeros(2, 2)
    return dense.index_put((i[0], i[1]), v, accumulate=True) + 1
