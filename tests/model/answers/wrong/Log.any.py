def forward(self, x):
    if x.requires_grad:
        x = torch.where((x.detach() > 0).any(), x, x.clamp(min=1e-6))
        return x.log()
    return x.clamp(min=1e-6).log()
