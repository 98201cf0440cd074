// A small model of which one line can be mended safely.
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
