def forward(self, x):
    s = torch.stack([row.sum() for row in x]).detach()
    s = torch.where(s > -1e30, s, -1e30)
    place = x.shape[0] - 1 - (s == s.max()).flip(0).to(torch.int64).argmax()
    return x.index_select(0, place.view(1))[0] * s.max()
