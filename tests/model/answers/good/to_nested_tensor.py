@torch.compile
def case(a, b):
    size = max(a.shape[0], b.shape[0])
    rows = [torch.nn.functional.pad(t, (0, size - t.shape[0])) for t in (a, b)]
    return torch.stack(rows).detach()
