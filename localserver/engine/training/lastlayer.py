"""Trains the embedder's last layer (2 TRUNK pooled values to 128) on segments of meetings of training speakers; all
other tensors stay as they are.

lastlayer.py --weights OLD.hubw --out NEW.hubw --parity TEST_VECTORS.hubw --version VERSION MEETINGS...

Pairs are of one meeting, because only there embeddings are compared: of single segments, and of means of two and of
three that follow each other; of one person they are at least APART seconds apart, so mostly of other sentences.
Logistic loss, in which pairs of one person and of two count the same, with one threshold for all meetings, which is
that of the old layer: a clustering has one, too. How steep the loss is, is learnt. The 1,500 steps take 3 minutes on
one core.

The result lies between the old layer and the trained one, which is worse for single segments of other people. Method:
WiSE-FT, Wortsman et al., arXiv 2109.01903."""
import argparse
import math
import multiprocessing as mp
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import export
from losses import eer
from networks import average_into
from segments import pooled
from targets import recordings

SIZES = (1, 2, 3)  # segments of which means are compared
APART = 5.0  # s between two segments of one person
MIN_SEGMENTS = 12  # segments of a meeting
MEETINGS, SEGMENTS = 40, 30  # of a step, of each of its meetings
LEARNING_RATE, HOLD, AVERAGE = (
    1e-3,
    5e-4,
    0.995,
)  # HOLD draws the layer to where it began; AVERAGE is the decay of the mean that is exported


class Layer(nn.Module):
    def __init__(self, w, b):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.tensor(w, dtype=torch.float32)), nn.Parameter(
            torch.tensor(b, dtype=torch.float32)
        )

    def forward(self, x):
        return F.normalize(F.linear(torch.from_numpy(x).float(), self.w, self.b))


def choose_segments(rng, person, start, count):
    """about `count` segments of a meeting, in threes of one person that follow each other -> their indices"""
    by = [k[np.argsort(start[k])] for k in (np.flatnonzero(person == p) for p in np.unique(person)) if len(k) >= 3]
    out = []
    while len(out) < count and len(by) > 1:
        k = by[rng.integers(len(by))]
        i = rng.integers(len(k) - 2)
        out += list(k[i : i + 3])
    return np.array(out, int)


def pairs(size, person, start, end):
    """means of `size` of segments in threes -> (i, j, of one person?, of two?)"""
    first = np.arange(len(person)) if size == 1 else np.arange(0, len(person), 3)
    i, j = np.triu_indices(len(first), 1)
    a, b = first[i], first[j]
    apart = np.maximum(start[a] - end[b + size - 1], start[b] - end[a + size - 1]) > APART
    return i, j, torch.from_numpy((person[a] == person[b]) & apart), torch.from_numpy(person[a] != person[b])


def means(z, size):
    return z if size == 1 else F.normalize(z.view(-1, 3, z.shape[1])[:, :size].sum(1))


def step_pairs(rng, meetings, layer):
    """one step's meetings -> of each size and meeting (which size, cosines, of one person?, of two?)"""
    for q in rng.choice(len(meetings), min(MEETINGS, len(meetings)), replace=False):
        person, start, end, x = meetings[q]
        k = choose_segments(rng, person, start, SEGMENTS)
        if not len(k):
            continue
        z = layer(x[k])
        for s, size in enumerate(SIZES):
            i, j, same, other = pairs(size, person[k], start[k], end[k])
            if same.any() and other.any():
                v = means(z, size)
                yield s, (v[i] * v[j]).sum(1), same, other


def equal_error(rng, meetings, layer, steps=5):
    """-> of each size, the threshold at which as many pairs of one person are rejected as of two are accepted, and
    these errors in %"""
    cosines = [([], []) for _ in SIZES]
    with torch.no_grad():
        for _ in range(steps):
            for s, c, same, other in step_pairs(rng, meetings, layer):
                cosines[s][0].append(c[same].numpy())
                cosines[s][1].append(c[other].numpy())
    cosines = [tuple(map(np.concatenate, f)) for f in cosines]
    grid = np.linspace(-1, 1, 2001)
    return [grid[np.argmin(np.abs([(a < t).mean() - (b >= t).mean() for t in grid]))] for a, b in cosines], [
        eer(a, b) for a, b in cosines
    ]


def train(meetings, w, b, steps, seed=1):
    """meetings: (person, start, end, pooled) of each; w [128, 2 TRUNK], b [128]: the start -> the same, trained"""
    rng = np.random.default_rng(seed)
    meetings = [m for m in meetings if len(m[0]) >= MIN_SEGMENTS and len(np.unique(m[0])) > 1]
    print('%d meetings, %d segments' % (len(meetings), sum(len(m[0]) for m in meetings)), flush=True)
    layer, begin, mean = Layer(w, b), Layer(w, b), Layer(w, b)
    thresholds, errors = equal_error(rng, meetings, begin)
    steep = nn.Parameter(torch.tensor([2.3, 2.4, 2.5]))
    opt = torch.optim.AdamW(
        [dict(params=layer.parameters(), weight_decay=0.01), dict(params=[steep], weight_decay=0.0, lr=0.003)],
        lr=LEARNING_RATE,
        betas=(0.9, 0.98),
    )
    for step in range(steps):
        opt.param_groups[0]['lr'] = (
            LEARNING_RATE * min(1, step / 50.0 + 0.02) * (0.5 + 0.5 * math.cos(math.pi * step / steps)) + 1e-6
        )
        losses = []
        for s, c, same, other in step_pairs(rng, meetings, layer):
            x = steep[s].exp() * (c - thresholds[s])
            losses.append(0.5 * F.softplus(-x[same]).mean() + 0.5 * F.softplus(x[other]).mean())
        loss = sum(losses) / len(losses)
        opt.zero_grad()
        (
            loss + HOLD * sum(((p - q.detach()) ** 2).sum() for p, q in zip(layer.parameters(), begin.parameters()))
        ).backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        opt.step()
        average_into(mean, layer, min(AVERAGE, (step + 1) / (step + 11.0)))
        if step % 200 == 199:
            print('step %d loss %.4f' % (step + 1, loss.item()), flush=True)
    print(
        'equal error rate, %%: %s before, %s after'
        % tuple(' '.join('%.1f' % e for e in r) for r in (errors, equal_error(rng, meetings, mean)[1]))
    )
    return mean.w.detach().numpy(), mean.b.detach().numpy()


def of_meeting(job):
    return pooled(*job)


def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'out', 'parity', 'version'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--share', type=float, default=0.5, help='of the trained layer in the result')
    ap.add_argument('--steps', type=int, default=1500)
    ap.add_argument('--jobs', type=int, default=2)
    ap.add_argument('meetings', nargs='+')
    a = ap.parse_args()
    torch.set_num_threads(1)
    with mp.Pool(a.jobs) as pool:
        meetings = list(
            pool.imap(
                of_meeting, ((a.weights, x, turns) for folder in a.meetings for _, x, turns in recordings(folder))
            )
        )
    head, t = export.read(a.weights)
    old = [t['emb.fc.' + n].astype(np.float32) for n in 'wb']
    for n, p, q in zip('wb', old, train(meetings, *old, a.steps)):
        t['emb.fc.' + n] = ((1 - a.share) * p + a.share * q).astype(t['emb.fc.' + n].dtype)
    export.parity(t, a.parity, a.version)
    export.write(  # last: the recipe goes on when this file is there
        a.out,
        [(i['name'], t[i['name']]) for i in head['tensors']],
        a.version,
        dict(head['meta'], last_layer=dict(steps=a.steps, share=a.share)),
    )


if __name__ == '__main__':
    main()
