def forward(self, x):
    return x.clamp(min=1e-6).log()
