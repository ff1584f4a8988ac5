"""Losses"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case


class _Loss(Case):
    """Frames to frames; a subclass has an error of each row or frame."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, target, lengths):
        mask = (torch.arange(x.shape[1])[None] < lengths[:, None]).float()
        error = self.error(self.linear(x), target)
        error = (error.mean(-1) if error.dim() == 3 else error) * mask
        return {"loss": error.sum() / mask.sum().clamp(min=1), "loss_weight": mask.sum()}


class Distances(_Loss):
    """`F.l1_loss`, `mse_loss`, `huber_loss`, `smooth_l1_loss` with `reduction="none"`"""

    def error(self, y, target):
        return F.l1_loss(y, target, reduction="none") + F.mse_loss(y, target, reduction="none") + F.huber_loss(y, target, reduction="none", delta=0.5) + \
            F.smooth_l1_loss(y, target, reduction="none", beta=0.3)


class MaskedSelectMean(_Loss):
    """`(y - target)[mask].mean()` over the valid frames"""

    refused = "as many elements as the values decide"
    way_out = Distances

    def error(self, y, target):
        return (y - target).masked_select(target > 0).mean().expand(y.shape[:2])  # blamed


class Binary(_Loss):
    """`F.binary_cross_entropy_with_logits` with `pos_weight`, `binary_cross_entropy`, focal weights"""

    def error(self, y, target):
        positive = (target > 0).float()
        logits = F.binary_cross_entropy_with_logits(y, positive, reduction="none", pos_weight=torch.tensor(2.0))
        p = torch.sigmoid(y)
        return logits * (1 - p) ** 2 + F.binary_cross_entropy(p, positive, reduction="none")


class Logits(_Loss):
    """`F.binary_cross_entropy_with_logits` of large logits, `F.logsigmoid`"""

    def error(self, y, target):
        positive = (target > 0).float()
        return F.binary_cross_entropy_with_logits(60 * y, positive, reduction="none") - F.logsigmoid(60 * y)


class Saturated(_Loss):
    """`F.binary_cross_entropy` of probabilities that are rounded to 0 and 1: `torch.sigmoid(60 * y)`"""

    refused = "binary_cross_entropy gets probabilities that are rounded to 0 and 1"
    way_out = Logits

    def error(self, y, target):
        return F.binary_cross_entropy(torch.sigmoid(60 * y), (target > 0).float(), reduction="none")  # blamed


class Divergences(_Loss):
    """`F.kl_div`, the KL of two normals, `F.poisson_nll_loss`, a normal's likelihood"""

    def error(self, y, target):
        kl = F.kl_div(F.log_softmax(y, -1), F.softmax(target, -1), reduction="none")
        normals = y - target - 0.5 + 0.5 * torch.exp(-2 * y) * (torch.exp(2 * target) + target ** 2)
        likelihood = 0.5 * (target + (y - target) ** 2 / torch.exp(target).clamp(min=1e-6))
        return kl + normals * 0.01 + likelihood + F.poisson_nll_loss(y, target, reduction="none")


class GaussianNll(_Loss):
    """`F.gaussian_nll_loss`, which looks for negative variances"""

    refused = "chooses a branch"
    way_out = Divergences

    def error(self, y, target):
        return F.gaussian_nll_loss(y, target, torch.exp(target), reduction="none")  # blamed


class Adversarial(_Loss):
    """losses of GANs: least squares, hinge, `softplus`, feature matching, cosine embedding"""

    def error(self, y, target):
        return (y - 1) ** 2 + F.relu(1 - y) + F.softplus(-y) + (y - target.detach()).abs() + (1 - F.cosine_similarity(y, target + 0.1, dim=-1))[..., None]


class Tokens(Case):
    """`F.cross_entropy` over [B·T, C] with `ignore_index`, `label_smoothing` and class weights"""

    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(TABLE, WIDTH), nn.Linear(WIDTH, TABLE)
        self.register_buffer("weight", torch.linspace(0.5, 1.5, TABLE))

    def targets(self, ids, id_lengths):
        inside = torch.arange(ids.size(1))[None] < id_lengths[:, None]
        return ids.long().masked_fill(~inside, -100), inside.float().sum()

    def forward(self, ids, id_lengths):
        logits, (target, count) = self.head(self.emb(ids)), self.targets(ids, id_lengths)
        total = F.cross_entropy(logits.view(-1, TABLE), target.view(-1), ignore_index=-100, label_smoothing=0.1, reduction="sum")
        total = total + F.cross_entropy(logits.transpose(1, 2), target, weight=self.weight, reduction="sum", label_smoothing=0.1)
        return {"loss": total / count.clamp(min=1), "loss_weight": count}


class TokensMean(Tokens):
    """`nn.CrossEntropyLoss` with its mean, guarded for empty batches by `torch.where`"""

    def forward(self, ids, id_lengths):
        logits, (target, count) = self.head(self.emb(ids)), self.targets(ids, id_lengths)
        target = torch.cat([target.view(-1), torch.zeros(1, dtype=torch.long)])
        logits = torch.cat([logits.reshape(-1, TABLE), 1e4 * F.one_hot(torch.zeros(1, dtype=torch.long), TABLE).float()])
        return {"loss": nn.CrossEntropyLoss()(logits, target) * (count + 1) / count.clamp(min=1), "loss_weight": count}


class NextTokens(Tokens):
    """the next token's loss: `logits[:, :-1]`, `ids[:, 1:]`, `nll_loss`, `gather` of log probabilities"""

    def forward(self, ids, id_lengths):
        logits, (target, count) = self.head(self.emb(ids)), self.targets(ids, id_lengths)
        logs = F.log_softmax(logits[:, :-1], dim=-1)
        total = F.nll_loss(logs.reshape(-1, TABLE), target[:, 1:].reshape(-1), reduction="sum")
        picked = torch.gather(logs, 2, target[:, 1:, None].clamp(min=0)).squeeze(2) * (target[:, 1:] >= 0)
        return {"loss": (total - picked.sum()) / count.clamp(min=1), "loss_weight": count}


class Contrastive(Case):
    """a contrastive loss over the batch: normalized products, `diagonal`, `logsumexp`"""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, lengths):
        rows = (lengths > 0).float()
        a, b = F.normalize(self.a(x.sum(1)), dim=-1, eps=1e-3), F.normalize(self.b(x.sum(1)), dim=-1, eps=1e-3)
        logits = a @ b.T / 0.1 + (1 - rows)[None] * -1e9
        each = torch.logsumexp(logits, dim=1) - logits.diagonal()
        return {"loss": (torch.where(rows > 0, each, 0.0)).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class _Means(Case):
    """A mean of each row, or a distribution over its frames."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, lengths):
        rows = (lengths > 0).float()
        return {"loss": (self.means(self.linear(x), lengths).square().mean(1) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class RowMeans(_Means):
    """a mean over each row's frames, `sum / lengths.clamp(min=1)`, its root by `sqrt(x + 1e-8)`"""

    def means(self, y, lengths):
        mask = (torch.arange(y.shape[1])[None] < lengths[:, None])[..., None]
        return (y * mask).sum(1) / lengths.clamp(min=1)[:, None] + ((y * mask).square().sum(1) + 1e-8).sqrt()


class RowAttention(_Means):
    """a softmax over each row's frames, masked by `-1e9`"""

    def means(self, y, lengths):
        scores = y[..., 0].masked_fill(torch.arange(y.shape[1])[None] >= lengths[:, None], -1e9)
        return (torch.softmax(scores, 1)[..., None] * y).sum(1)


class DividedByLength(_Means):
    """a division by the length of an empty row"""

    refused = "in a batch with an empty row, grad.linear.bias is NaN: div gives it first"
    way_out = RowMeans

    def means(self, y, lengths):
        return (y * 1.0).sum(1) / lengths[:, None] * (lengths > 0)[:, None]  # blamed


class RootOfNothing(_Means):
    """`sqrt` of the sum of an empty row, whose gradient is infinite"""

    refused = "the gradient of sqrt gives it first"
    way_out = RowMeans

    def means(self, y, lengths):
        mask = (torch.arange(y.shape[1])[None] < lengths[:, None])[..., None]
        return (y * mask).square().sum(1).sqrt()  # blamed


class MaskedByInfinity(_Means):
    """a softmax over an empty row, masked by `-inf`"""

    refused = "_softmax gives it first"
    way_out = RowAttention

    def means(self, y, lengths):
        scores = y[..., 0].masked_fill(torch.arange(y.shape[1])[None] >= lengths[:, None], float("-inf"))
        return (torch.softmax(scores, 1)[..., None] * y).sum(1)  # blamed


class BoundedLayers(_Means):
    """layers that are scaled by the rows with frames, bounded by `clamp`"""

    def means(self, y, lengths):
        mask = (torch.arange(y.shape[1])[None] < lengths[:, None])[..., None].float()
        for _ in range(6):
            scale = (y.square() * mask).sum() / mask.sum().clamp(min=1)
            y = (y * (scale + 1e-14).rsqrt()).clamp(-1e4, 1e4)
        return (y * mask).sum(1) / lengths.clamp(min=1)[:, None]


class GrowingLayers(_Means):
    """layers that are scaled by the rows with frames: without one, what an empty row has grows beyond f32"""

    refused = "numbers of empty rows grow from layer to layer"
    way_out = BoundedLayers

    def means(self, y, lengths):
        mask = (torch.arange(y.shape[1])[None] < lengths[:, None])[..., None].float()
        for _ in range(6):
            scale = (y.square() * mask).sum() / mask.sum().clamp(min=1)  # blamed
            y = y * (scale + 1e-14).rsqrt()
        return (y * mask).sum(1) / lengths.clamp(min=1)[:, None]
