def forward(self, x):
    s = torch.stack([row.sum() for row in x]).detach()
    place = s.argmax()
    return x.index_select(0, place.view(1))[0] * s.max()
