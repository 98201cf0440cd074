def forward(self, x: torch.Tensor):
    n = x.detach().norm()
    return F.normalize(x.flatten(), dim=0, eps=1e-8).view(x.shape) + 0 * n
