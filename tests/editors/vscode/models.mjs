// Small models. The first has one line that can be mended safely.
export const NET = `import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        print("forward")
        return y * 2


net = torch.compile(Net())


def example_inputs():
    return [(torch.ones(2, 4),)]
`;

// One that breaks twice: the branch is mended with a caveat, the output without.
export const GATE = `import torch
from torch import Tensor, nn


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        if y.mean() > 0:
            y = y * 2
        else:
            y = -y
        print("gated")
        return torch.tanh(y)


gate = torch.compile(Gate())


def example_inputs():
    return [(torch.ones(2, 4),)]
`;
