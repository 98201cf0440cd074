def forward(self, x):
    s = torch.stack([row.sum() for row in x]).detach()
    s = torch.where(s > 0, s, 0.0)
    place = (s == s.max()).to(torch.int64).argmax()
    return x.index_select(0, place.view(1))[0] * s.max()
