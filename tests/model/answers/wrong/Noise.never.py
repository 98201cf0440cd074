def forward(self, x):
    if self.training:
        x = torch.where(x.std() < 0.001, x * 1, x)
    return self.lin(x)
