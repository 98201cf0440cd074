def forward(self, x):
    if self.training:
        x = torch.where(x.std() < 0.001, x + torch.randn_like(x) * 0.1, x)
    return self.lin(x)
