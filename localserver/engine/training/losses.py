"""Losses of both networks, and the equal error rate."""
import itertools
import math
import numpy as np
import torch
import torch.nn.functional as F
from networks import CLASSES

PERMS = torch.tensor(
    [[CLASSES.index(tuple(sorted(p[i] for i in c))) for c in CLASSES] for p in itertools.permutations(range(3))]
)


def window_weights(kinds):
    """How much each frame of a window counts [kinds, 1, 250]; the last kind ends at "now", and is committed 0.5 to
    1.5 s before that."""
    w = torch.ones(kinds, 1, 250)
    w[-1, :, 225:] = 0.6
    w[-1, :, 175:225] = 1.6
    return w


def pit(logp, y, w):
    """logp [W, n, 7], y [W, n] (-1: not counted), w [W, n] -> mean over windows of the best permutation's cross
    entropy"""
    w = w * (y >= 0)
    t = PERMS.to(y.device)[:, y.clamp_min(0)]
    ce = torch.stack([-(logp.gather(2, p[..., None])[..., 0] * w).sum(1) for p in t]) / w.sum(1).clamp_min(1.0)
    return ce.min(0).values.mean()


def pair_loss(z, y, scale, bias):
    """z [W, T, d] of unit length, y [W, 2T]: same voice or not, for pairs of 40 ms frames with one voice alone"""
    a, b = y[:, 0::2], y[:, 1::2]
    ok = (a == b) & (a >= 1) & (a <= 3)
    m = ok[:, :, None] & ok[:, None]
    same = a[:, :, None] == a[:, None]
    l = F.binary_cross_entropy_with_logits(scale * (z @ z.transpose(1, 2)) + bias, same.float(), reduction='none')
    p, n = m & same, m & ~same
    return 0.5 * ((l * p).sum() / p.sum().clamp_min(1) + (l * n).sum() / n.sum().clamp_min(1))


class Pairs:
    """Which of n embeddings are compared. y: person, s: training speaker, c: corpus, g: example of each, int64 [n].
    Two voices of one speaker are neither the same nor different."""

    def __init__(self, y, s, c, g):
        equal = lambda v: v[:, None] == v[None]
        self.person = equal(y)
        self.here = equal(g)
        self.same = self.person & ~torch.eye(len(y), dtype=torch.bool, device=y.device)
        self.other = ~self.person & (~equal(s) | self.here)
        self.corpus = equal(c)


def contrastive(e, pairs, scale):
    """Supervised contrastive loss (Khosla et al., arXiv 2004.11362) of embeddings [n, d] against other people of the
    same corpus, those of the same example counting four times"""
    S = scale * (e @ e.t())
    ln = torch.logsumexp(
        (S + pairs.here * math.log(4.0)).masked_fill(~(pairs.other & pairs.corpus), -1e4), 1, keepdim=True
    )
    w = pairs.same.float()
    return (w * (torch.logaddexp(ln, S) - S)).sum() / w.sum().clamp_min(1.0)


def verification(e, pairs, steep, threshold):
    """Logistic loss of "one person" for the pairs inside an example at one threshold; pairs of one person and of two
    count the same"""
    x = steep * (e @ e.t() - threshold)
    p, n = pairs.same & pairs.here, pairs.other & pairs.here
    return 0.5 * (F.softplus(-x) * p).sum() / p.sum().clamp_min(1) + 0.5 * (
        F.softplus(x) * n
    ).sum() / n.sum().clamp_min(1)


def margin_softmax(e, centres, y, scale, margin):
    """Additive angular margin softmax (Deng et al., arXiv 1801.07698) over the centres [classes, d]; y [n] is -1 for
    who belongs to no class"""
    known = y >= 0
    c = (e @ F.normalize(centres).t()).clamp(-1 + 1e-6, 1 - 1e-6)
    at = y.clamp_min(0)[:, None]
    own = c.gather(1, at)
    x = scale * c.scatter(1, at, torch.cos(torch.acos(own) + margin))
    return (F.cross_entropy(x, at[:, 0], reduction='none') * known).sum() / known.sum().clamp_min(1)


def eer(target, other):
    t, n = np.sort(target), np.sort(other)
    th = np.unique(np.r_[t, n])
    if len(th) > 4000:
        th = th[np.linspace(0, len(th) - 1, 4000).astype(int)]
    fr, fa = np.searchsorted(t, th) / len(t), 1 - np.searchsorted(n, th) / len(n)
    i = np.argmin(np.abs(fr - fa))
    return 50 * (fr[i] + fa[i])
