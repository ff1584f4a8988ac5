"""Random numbers from the seed"""

import torch
import torch.nn.functional as F

from .case import WIDTH, Case
from .shapes import _Linear


class Draws(_Linear):
    """noise in `forward`: `torch.randn_like`, `torch.rand`, `randint`, `torch.distributions.Normal(...).rsample()`, `F.gumbel_softmax`, hard and soft"""

    draws = True

    def forward(self, x):
        mean, scale = self.linear(x).chunk(2, -1)
        y = torch.cat([mean + torch.randn_like(mean) * scale.exp(), torch.distributions.Normal(mean, F.softplus(scale)).rsample()], -1)
        y = y + torch.rand(x.shape[0], 1, 1) + torch.randint(0, 3, (1, x.shape[1], 1))
        return F.gumbel_softmax(y, tau=0.5, hard=True) + F.gumbel_softmax(y, dim=1)


class RandomOrder(_Linear):
    """a random order of channels, frames and rows: `torch.rand(n).argsort()`"""

    draws = True

    def forward(self, x):
        y = self.linear(x)
        y = y[:, :, torch.rand(WIDTH).argsort()] + y[:, torch.rand(x.shape[1]).argsort()]
        return y + 0.5 * y[torch.rand(x.shape[0]).argsort()]


class RandomChoice(_Linear):
    """a class drawn by its probability: the `argmax` of logarithms and Gumbel noise"""

    draws = True

    def forward(self, x):
        p = self.linear(x).softmax(-1)
        drawn = (p.log() - (-torch.rand_like(p).log()).log()).argmax(-1)
        return F.one_hot(drawn, WIDTH) * p


class Permuted(_Linear):
    """a random order: `torch.randperm`"""

    refused = "draws random numbers from a state that no checkpoint has"
    way_out = RandomOrder

    def forward(self, x):
        return self.linear(x)[:, :, torch.randperm(WIDTH)]  # blamed


class Multinomial(_Linear):
    """`torch.multinomial`"""

    refused = "draws random numbers from a state that no checkpoint has"
    way_out = RandomChoice

    def forward(self, x):
        p = self.linear(x).softmax(-1)
        return p * F.one_hot(torch.multinomial(p.flatten(0, 1), 1).view(x.shape[:2]), WIDTH)  # blamed


class Poisson(_Linear):
    """`torch.poisson`, and other distributions without a form from the seed"""

    refused = "aten.poisson.default draws random numbers from a state that no checkpoint has"
    way_out = Draws

    def forward(self, x):
        return self.linear(x) + torch.poisson(x.abs())  # blamed


class OwnGenerator(Case):
    """a `torch.Generator` of one's own"""

    refused = "a torch.Generator has a state that no checkpoint has"
    way_out = Draws

    def __init__(self):
        super().__init__()
        self.linear, self.generator = torch.nn.Linear(WIDTH, WIDTH), torch.Generator()

    def forward(self, x):
        return self.linear(x) + torch.randn(x.shape, generator=self.generator)  # blamed
