def forward(self, x):
    norm = x.detach().norm()
    x = torch.where(norm > 1.0, x / norm, x)
    return x
