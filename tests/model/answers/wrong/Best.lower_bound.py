def forward(self, x):
    s = torch.stack([row.sum() for row in x]).detach()
    s = torch.where(s > -1e+30, s, -2e+30)
    place = (s == s.max()).to(torch.int64).argmax()
    return x.index_select(0, place.view(1))[0] * s.max()
