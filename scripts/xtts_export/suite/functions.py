"""Elementwise functions and statistics"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case


class _Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.of(self.linear(x), x)


class Exponentials(_Linear):
    """`exp`, `log`, `log1p`, `expm1`, `logaddexp`, `xlogy`, `pow`, `rsqrt`, `erf`"""

    def of(self, y, x):
        y = torch.expm1(y) + torch.log1p(y.abs()) + torch.logaddexp(y, x) + torch.xlogy(y.abs() + 1, x.abs() + 1)
        return y + torch.erf(y) + y.abs().pow(0.3 + torch.sigmoid(x)) + torch.pow(2.0, x) + (y.square() + 1).rsqrt() + (y * 0.1).exp().log()


class Angles(_Linear):
    """`sin`, `cos`, `tanh`, `atan`, `atan2`, `asinh`, `sinc`, `hypot`"""

    def of(self, y, x):
        return torch.sin(y) + torch.cos(y) * torch.tanh(y) + torch.atan(y) + torch.asinh(y) + torch.atan2(y, x + 1) + torch.sinc(y) + torch.hypot(y, x + 1)


class Rounding(_Linear):
    """`round` straight through, `floor`, `ceil`, `trunc`, `frac`, `sign`, `fmod`, `remainder`, `//`, `%`"""

    def of(self, y, x):
        return y + (y.round() - y).detach() + y.floor() + y.ceil() + y.trunc() + y.frac() + torch.sign(y) + torch.fmod(y, 0.7) + x % 0.7 + x // 0.5


class Shrinking(_Linear):
    """`F.hardshrink`, `softshrink`, `tanhshrink`, `threshold`, `nan_to_num`, `isnan`"""

    def of(self, y, x):
        y = F.tanhshrink(y) + F.softshrink(y, 0.2) + F.hardshrink(y, 0.3) + F.threshold(y, 0.1, 0.0)
        return torch.nan_to_num(torch.where(torch.isnan(y) | torch.isinf(y), 0.0, y))


class Quantiles(_Linear):
    """`median`, `kthvalue`, `quantile`, `torch.searchsorted`"""

    def of(self, y, x):
        y = y - y.median(-1, keepdim=True).values + y.kthvalue(2, dim=-1, keepdim=True).values * y.quantile(0.3, dim=-1, keepdim=True)
        return y + torch.searchsorted(torch.linspace(-1, 1, 5), x)


class Products(_Linear):
    """`prod` and `cumprod` over a fixed count, `logcumsumexp`, `torch.cdist`"""

    def of(self, y, x):
        return y.prod(-1, keepdim=True) + torch.sigmoid(y).cumprod(-1) + y.logcumsumexp(1) + torch.cdist(y, x) @ x * 0.1


class Logical(_Linear):
    """`any`, `all`, `count_nonzero`, comparisons, `logical_and`, `&` and `>>` of integers"""

    def of(self, y, x):
        y = y * (x > 0).any(-1, keepdim=True) * (x > -9).all(1, keepdim=True) + torch.count_nonzero(x, dim=-1)[..., None]
        bits = torch.arange(WIDTH)
        return y * torch.logical_and(x > y, y < 1) + torch.logical_not(x.eq(y)).float() * ((bits & 1) + (bits >> 1))


class SizesAsNumbers(_Linear):
    """sizes in sums, quotients and bounds: `y / x.shape[1]`, `x.size(1) ** 0.5`, `arange(n) / n`, `clamp(max=n - 2)`"""

    def of(self, y, x):
        n = x.shape[1]
        y = y.clamp(max=n) * torch.arange(n).clamp(max=n - 2)[:, None]
        return y / n + y / n ** 0.5 + (torch.arange(n) / n)[:, None] + y * (2 * n - 1)


class LogOfSize(_Linear):
    """`math.log(x.shape[1])`"""

    refused = "dimension T was baked in"
    way_out = SizesAsNumbers

    def of(self, y, x):
        return y / math.log(x.shape[1])  # blamed


class RunningMaximum(_Linear):
    """a running maximum and a running minimum by a triangle of [T, T]"""

    def of(self, y, x):
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, :, :, None]
        return torch.where(seen, y[:, None], -1e9).amax(2) - 0.5 * torch.where(seen, y[:, None], 1e9).amin(2)


class Cummin(_Linear):
    """`cummin`"""

    refused = "operator aten.cummin.default has no form"
    way_out = RunningMaximum

    def of(self, y, x):
        return y.cummin(1).values  # blamed


class Cummax(_Linear):
    """`cummax`"""

    refused = "operator aten.cummax.default has no form"
    way_out = RunningMaximum

    def of(self, y, x):
        return y.cummax(1).values  # blamed


class ProductByLogarithms(_Linear):
    """a product over time: `exp` of a sum of logarithms"""

    def of(self, y, x):
        return torch.exp(F.logsigmoid(y).sum(1, keepdim=True)) + F.logsigmoid(y).cumsum(1).exp() + x


class ProductOverTime(_Linear):
    """`prod` and `cumprod` over a dynamic length"""

    refused = "prod runs over a dynamic length"
    way_out = ProductByLogarithms

    def of(self, y, x):
        return torch.sigmoid(y).prod(1, keepdim=True) + x  # blamed


class Stirling(_Linear):
    """the logarithm of the gamma function by a series"""

    def of(self, y, x):
        z = y.abs() + 3
        return (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + 1 / (12 * z)


class Lgamma(_Linear):
    """`torch.lgamma`"""

    refused = "operator aten.lgamma.default has no form"
    way_out = Stirling

    def of(self, y, x):
        return torch.lgamma(y.abs() + 3)  # blamed


class Logistic(_Linear):
    """a quantile function: the logistic one"""

    def of(self, y, x):
        u = torch.sigmoid(y) * 0.98 + 0.01
        return torch.log(u / (1 - u))


class Erfinv(_Linear):
    """`torch.erfinv`, the normal quantile"""

    refused = "operator aten.erfinv.default has no form"
    way_out = Logistic

    def of(self, y, x):
        return torch.erfinv(torch.tanh(y) * 0.9)  # blamed


class Triangular(Case):
    """an invertible layer by triangular matrices (Glow): `tril`, `triu`, the determinant from the diagonal"""

    def __init__(self):
        super().__init__()
        self.lower, self.upper, self.scale = (nn.Parameter(torch.randn(*shape) * 0.1) for shape in ((WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,)))

    def forward(self, x):
        lower, upper = self.lower.tril(-1) + torch.eye(WIDTH), self.upper.triu(1) + torch.diag_embed(self.scale.exp())
        return x @ (lower @ upper).T + self.scale.sum()


class _Square(Case):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(WIDTH, WIDTH))[0] + 0.1 * torch.randn(WIDTH, WIDTH))


class InvertibleConvolution(_Square):
    """`torch.logdet`, `slogdet`, `det` and `inverse` of matrices of up to 32 rows: the invertible convolution of Glow-TTS"""

    def __init__(self):
        super().__init__()
        w = torch.linalg.qr(torch.randn(4, 4))[0]
        w[:, 0] *= torch.det(w)
        self.groups = nn.Parameter(w)

    def forward(self, x, lengths):
        y = x.transpose(1, 2).unflatten(1, (2, 2, 2)).permute(0, 1, 3, 2, 4).reshape(x.shape[0], 4, 2, -1)
        y = F.conv2d(y, self.groups.view(4, 4, 1, 1)).flatten(1, 2).transpose(1, 2)
        size = torch.logdet(self.groups) * lengths + torch.linalg.slogdet(self.weight).logabsdet
        return (y @ self.weight.inverse() + torch.det(self.groups)) * size[:, None, None]


class Solutions(_Square):
    """`torch.linalg.solve`, `inv`, `solve_triangular`, and `nn.utils.parametrizations.orthogonal` with `orthogonal_map="cayley"`"""

    def __init__(self):
        super().__init__()
        self.turn = nn.utils.parametrizations.orthogonal(nn.Linear(WIDTH, WIDTH), orthogonal_map="cayley", use_trivialization=False)

    def forward(self, x):
        lower = torch.linalg.solve_triangular(self.weight.tril(-1), x.mT, upper=False, unitriangular=True)
        upper = torch.linalg.solve_triangular(self.weight.triu() + 2 * torch.eye(WIDTH), self.turn(x), upper=True, left=False)
        return lower.mT + upper + torch.linalg.solve(self.weight, x.mT).mT @ torch.linalg.inv(self.weight)


class MatrixExponential(_Square):
    """`torch.matrix_exp`, as `parametrizations.orthogonal` has it by default"""

    refused = "operator aten.linalg_matrix_exp.default has no form"
    way_out = Solutions

    def forward(self, x):
        return x @ torch.matrix_exp(self.weight - self.weight.mT)  # blamed


class Householder(_Square):
    """`parametrizations.orthogonal` with `orthogonal_map="householder"`"""

    refused = "operator aten.linalg_householder_product.default has no form"
    way_out = Solutions

    def __init__(self):
        super().__init__()
        self.turn = nn.utils.parametrizations.orthogonal(nn.Linear(WIDTH, WIDTH), orthogonal_map="householder")

    def forward(self, x):
        return self.turn(x)  # blamed


class Cholesky(_Square):
    """`torch.linalg.cholesky`"""

    refused = "operator aten.linalg_cholesky_ex.default has no form"
    way_out = Triangular

    def forward(self, x):
        return x @ torch.linalg.cholesky(self.weight @ self.weight.mT + torch.eye(WIDTH))  # blamed


class LargeDeterminant(_Square):
    """a determinant of more than 32 rows, or of [T, T]"""

    refused = "up to 32 rows have"
    way_out = Triangular

    def forward(self, x):
        return x @ self.weight + torch.linalg.slogdet(x @ x.mT)[1][:, None, None]  # blamed


class Histograms(Case):
    """counts by one-hot vectors and by edges of bins"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(TABLE + 3, WIDTH)

    def forward(self, x, ids):
        over = (x[..., None] >= torch.tensor([-1.0, 0.0, 1.0])).float().sum((1, 2))
        present = (ids[..., None] == torch.arange(TABLE)).any(1)
        return self.linear(torch.cat([F.one_hot(ids.long(), TABLE).sum(1) + present, over * 0.1], dim=1))


class Bincount(Histograms):
    """`torch.bincount`"""

    refused = "aten.bincount.default returns as many elements"
    way_out = Histograms

    def forward(self, x, ids):
        return self.linear(ids.flatten().bincount(minlength=TABLE + 3).float()) + x  # blamed


class Histc(Histograms):
    """`torch.histc`"""

    refused = "operator aten.histc.default has no form"
    way_out = Histograms

    def forward(self, x):
        return self.linear(torch.histc(x, TABLE + 3)) + x  # blamed


class Unique(Histograms):
    """`ids.unique()`"""

    refused = "aten._unique2.default returns as many elements"
    way_out = Histograms

    def forward(self, ids):
        return self.linear.bias + ids.unique().sum()  # blamed


class Bags(Case):
    """means of embeddings: a mask and a sum"""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE, WIDTH)

    def forward(self, ids, id_lengths):
        inside = (torch.arange(ids.shape[1])[None] < id_lengths[:, None]).float()[..., None]
        return (self.table(ids) * inside).sum(1) / id_lengths.clamp(min=1)[:, None]


class EmbeddingBag(Case):
    """`nn.EmbeddingBag`"""

    refused = "embedding_bag.default has no form"
    way_out = Bags

    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(TABLE, WIDTH)

    def forward(self, ids):
        return self.table(ids)  # blamed
