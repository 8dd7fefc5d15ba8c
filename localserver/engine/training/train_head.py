"""The embedder's last layer, 2 TRUNK pooled values to 128, on from exported weights, on pieces of meetings of training speakers.

train_head.py --weights W.hubw --pooled A,B --check dev=C,... --out OUT      (OUT/embedder.pt is for export.py)

Pairs of one meeting, because only there embeddings are ever compared: single pieces, means of two and of three that follow each other; of one person
at least 5 s apart, mostly other sentences. Logistic loss, the same and different people counting the same, and one threshold for all meetings: a clustering
has one, too, and should not need another for every corpus. The thresholds stay near what they were (THRESHOLDS), or all those of the clustering would have to move;
how steep the loss is, is learnt. --hold pulls the layer to where it began."""
import argparse
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import export
from measure_embedder import eer
from networks import TRUNK, Embedder, Segmenter
from restore import restore
from train_joint import average_into

SIZES, THRESHOLDS = (1, 2, 3), (.235, .34, .41)
APART = 5.                                                            # s between two pieces of one person
LEAST = 12                                                            # pieces of a meeting


class Pooled:
    """what pooled.py keeps: recordings as (person, start, end, rows)"""

    def __init__(self, folders):
        self.x, self.meetings = [], []
        for d in folders:
            p = np.load(os.path.join(d, 'pieces.npy'))
            self.x.append(np.fromfile(os.path.join(d, 'pooled.f16'), np.float16).reshape(-1, 2 * TRUNK))
            assert len(p) == len(self.x[-1])
            at = sum(len(x) for x in self.x[:-1])
            for r in np.unique(p[:, 0]):
                k = np.flatnonzero(p[:, 0] == r)
                if len(k) >= LEAST and len(np.unique(p[k, 1])) > 1:
                    self.meetings.append((p[k, 1], p[k, 2], p[k, 3], k + at))
        self.x = np.concatenate(self.x)

    def draw(self, rng, q, count):
        """about `count` pieces of meeting q: threes that follow each other, of any of its people -> indices into the meeting"""
        who, start, _, _ = self.meetings[q]
        by = [k[np.argsort(start[k])] for k in (np.flatnonzero(who == p) for p in np.unique(who)) if len(k) >= 3]
        out = []
        while len(out) < count and len(by) > 1:
            k = by[rng.integers(len(by))]
            i = int(rng.integers(len(k) - 2))
            out += list(k[i:i + 3])
        return np.array(out, int)


class Head(nn.Module):
    def __init__(self, emb):
        super().__init__()
        self.w, self.b = nn.Parameter(emb.fc.weight.detach().clone()), nn.Parameter(emb.bno.bias.detach().clone())

    def forward(self, x):
        return F.normalize(F.linear(x, self.w, self.b))


def pairs(size, who, start, end):
    """of means of `size` of pieces in threes: (rows of their first pieces, i, j, same person, other person)"""
    first = np.arange(len(who)) if size == 1 else np.arange(0, len(who), 3)
    i, j = np.triu_indices(len(first), 1)
    a, b = first[i], first[j]
    apart = np.maximum(start[a] - end[b + size - 1], start[b] - end[a + size - 1]) > APART
    same = who[a] == who[b]
    return i, j, torch.from_numpy(same & apart), torch.from_numpy(~same)


def means(z, size):
    return z if size == 1 else F.normalize(z.view(-1, 3, z.shape[1])[:, :size].sum(1))


@torch.no_grad()
def measure(head, data, sizes=(1, 3, 6)):
    """EER in % of all pairs inside meetings, of single pieces and of means of neighbouring three and six"""
    row = []
    for size in sizes:
        same, other = [], []
        for who, start, end, rows in data.meetings:
            z = head(torch.from_numpy(data.x[rows].astype(np.float32))).numpy()
            v, p, s, e = [], [], [], []
            for k in np.unique(who):
                i = np.flatnonzero(who == k)
                i = i[np.argsort(start[i])]
                for at in range(0, len(i) - size + 1, size):
                    m = (z[i[at:at + size]] * (end - start)[i[at:at + size], None]).sum(0)
                    v.append(m / np.linalg.norm(m)); p.append(k); s.append(start[i[at]]); e.append(end[i[at + size - 1]])
            if len(v) < 2:
                continue
            p, s, e = np.array(p), np.array(s), np.array(e)
            i, j = np.triu_indices(len(v), 1)
            c = (np.array(v) @ np.array(v).T)[i, j]
            far = np.maximum(s[i] - e[j], s[j] - e[i]) > APART
            same.append(c[(p[i] == p[j]) & far]); other.append(c[p[i] != p[j]])
        row.append('%.2f' % eer(np.concatenate(same), np.concatenate(other)))
    return ' '.join(row)


def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'pooled', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--check', default='', help='NAME=FOLDER,... of pooled pieces that are only measured; those of a name are measured together')
    ap.add_argument('--minutes', type=float, default=2.5); ap.add_argument('--lr', type=float, default=1e-3); ap.add_argument('--hold', type=float, default=.0005)
    ap.add_argument('--batch', type=int, default=40, help='meetings'); ap.add_argument('--pieces', type=int, default=30, help='of a meeting'); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    emb = Embedder().eval()
    prior = restore(a.weights, emb, Segmenter())
    data = Pooled(a.pooled.split(','))
    checks = {}
    for c in filter(None, a.check.split(',')):
        checks.setdefault(c.split('=')[0], []).append(c.split('=')[1])
    checks = {k: Pooled(v) for k, v in checks.items()}
    print('%d meetings, %d pieces' % (len(data.meetings), sum(len(m[0]) for m in data.meetings)))
    head, ema = Head(emb), Head(emb)
    begin = [p.detach().clone() for p in head.parameters()]
    steep = nn.Parameter(torch.tensor([2.3, 2.4, 2.5]))
    opt = torch.optim.AdamW([dict(params=list(head.parameters()), weight_decay=.01), dict(params=[steep], weight_decay=0., lr=.003)], lr=a.lr, betas=(.9, .98))

    def tell(it, loss):
        print('step %5d loss %.4f  EER %s' % (it, loss, '  '.join('%s %s' % (k, measure(ema, d)) for k, d in checks.items())), flush=True)
    tell(0, float('nan'))
    t0, it, acc, mark = time.time(), 0, [], 1
    while (fr := (time.time() - t0) / (60 * a.minutes)) < 1:
        opt.param_groups[0]['lr'] = a.lr * min(1, it / 50. + .02) * (.5 + .5 * np.cos(np.pi * fr)) + 1e-6
        drawn = [(q, data.draw(rng, q, a.pieces)) for q in rng.choice(len(data.meetings), min(a.batch, len(data.meetings)), replace=False)]
        drawn = [(q, k) for q, k in drawn if len(k)]
        z = head(torch.from_numpy(data.x[np.concatenate([data.meetings[q][3][k] for q, k in drawn])].astype(np.float32)))
        loss, n, at = 0., 0, 0
        for q, k in drawn:
            who, start, end = (v[k] for v in data.meetings[q][:3])
            for s, size in enumerate(SIZES):
                i, j, same, other = pairs(size, who, start, end)
                if not (same.any() and other.any()):
                    continue
                v = means(z[at:at + len(k)], size)
                x = steep[s].exp() * ((v[i] * v[j]).sum(1) - THRESHOLDS[s])
                loss, n = loss + .5 * F.softplus(-x[same]).mean() + .5 * F.softplus(x[other]).mean(), n + 1
            at += len(k)
        loss = loss / n
        opt.zero_grad()
        (loss + a.hold * sum(((p - b) ** 2).sum() for p, b in zip(head.parameters(), begin))).backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.)
        opt.step()
        it += 1
        average_into(ema, head, min(.995, it / (it + 10.)))
        acc.append(loss.item())
        if fr * 5 > mark:
            spent = time.time()
            tell(it, np.mean(acc)); acc = []; mark += 1
            t0 += time.time() - spent                                 # measuring takes nothing off the time to learn in
    tell(it, np.mean(acc or [float('nan')]))
    with torch.no_grad():
        emb.fc.weight.copy_(ema.w); emb.bno.bias.copy_(ema.b)
    made = export.read(a.weights)[0]['meta']['embedder']
    os.makedirs(a.out, exist_ok=True)
    torch.save(dict(ema=emb.state_dict(), it=made['steps'], spent=60. * made['minutes'], prior=prior), os.path.join(a.out, 'embedder.pt'))
    print('done: %d steps' % it)


if __name__ == '__main__':
    main()
