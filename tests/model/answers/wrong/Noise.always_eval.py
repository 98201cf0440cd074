def forward(self, x):
    keep = self.training and x.requires_grad
    x = torch.where(x.std() < 0.001, x + 0.0, x)
    return self.lin(x)
