def forward(self, x):
    m = x.detach().flatten().median()
    return x - m
