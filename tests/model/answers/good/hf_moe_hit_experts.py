@torch.compile
def case(x, idx):
    out = torch.zeros_like(x)
    hit = idx.flatten().sort().values
    last = None
    for e in hit.unbind():
        m = idx == e
        more = out + x * m[:, None] * (e + 1)
        out = more if last is None else torch.where(e == last, out, more)
        last = e
    return out
