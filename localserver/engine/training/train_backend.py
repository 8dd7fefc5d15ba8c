"""Turns the embedder's space so that people lie apart in it: a linear map of the 128 values, folded into the last layer.

train_backend.py --pieces PIECES --rttm FOLDER,... --embedder E/embedder.pt --out OUT

PIECES is what the engine hears of conversations (`go run ./cmd/eval --dir FOLDERS --sets ... --pieces PIECES`), a line for each piece of about a
second: recording, start, end, embedding. So the map learns from the pieces that the clustering really gets: cut by the segmenter, impure, in rooms,
and compares them inside a conversation, where they will be compared.

It begins as within-class covariance normalisation (Hatch, Kajarekar, Stolcke, Interspeech 2006): directions in which one person varies count for
less. Then it is trained on pairs: pieces, and means of two and three of them, of one conversation, logistic loss, same and different people
counting the same; --hold pulls it to where it began. Without that it learns the training speakers."""
import argparse
import glob
import os
import numpy as np
import torch
import torch.nn.functional as F
from measure_embedder import eer

SIZES = (1, 2, 3)          # pieces whose mean is compared
PURE, LONE = .9, .8        # of a piece: least share of one person in its lone speech, and of lone speech in it
TWICE = .3                 # most of a piece that may have been in the one before
FRAMES = 50                # a second


def lone_speakers(path):
    """RTTM -> who talks alone in each 20 ms: int [frames], -1 nobody, -2 several"""
    turns = [l.split() for l in open(path) if l.startswith('SPEAKER')]
    names = sorted({p[7] for p in turns})
    who = np.full(int(max(float(p[3]) + float(p[4]) for p in turns) * FRAMES) + 10 * FRAMES, -1)
    for p in turns:
        part = who[int(float(p[3]) * FRAMES):int((float(p[3]) + float(p[4])) * FRAMES)]
        k = names.index(p[7])
        part[:] = np.where((part == -1) | (part == k), k, -2)
    return who


def read(path, folders):
    """[(speakers int [n], embeddings [n, 128])] by recording: the pieces that one person says, no second of it twice"""
    rows = {}
    for l in open(path):
        p = l.split()
        rows.setdefault(p[0], []).append(np.array(p[1:], np.float32))
    out = []
    for name in sorted(rows):
        who = lone_speakers(next(f for d in folders for f in glob.glob(os.path.join(d, name + '.rttm'))))
        x = np.stack(sorted(rows[name], key=lambda r: (r[0], r[1])))
        until, keep, speaker = -1., [], []
        for i, (a, b) in enumerate(x[:, :2]):
            w = who[int(round(a * FRAMES)):int(round(b * FRAMES))]
            v = w[w >= 0]
            if until - a > TWICE * (b - a) or len(v) < LONE * max(1, len(w)) or len(v) == 0:
                continue
            n = np.bincount(v)
            if n.max() < PURE * len(v):
                continue
            until = b
            keep.append(i); speaker.append(n.argmax())
        if len(keep) > 3:
            out.append((np.array(speaker), x[keep, 2:]))
    return out


def within(data):
    """covariance of a person's pieces around their mean, [128, 128]"""
    total, n = np.zeros((128, 128)), 0
    for s, e in data:
        for k in np.unique(s):
            x = e[s == k].astype(np.float64)
            if len(x) > 3:
                d = (x - x.mean(0)) * np.sqrt(len(x) / (len(x) - 1.))
                total += d.T @ d
                n += len(x)
    return total / n


def wccn(cov, ridge):
    """the symmetric square root of the inverse of cov, ridge times its mean variance added; scaled to a mean square of 1 a dimension"""
    v, q = np.linalg.eigh(cov + ridge * np.trace(cov) / 128 * np.eye(128))
    m = q @ np.diag(v ** -.5) @ q.T
    return m / np.sqrt((m ** 2).sum() / 128)


def trials(s):
    """for each of SIZES: (its index, pieces of each group [g, size], pairs of groups i, j, same)"""
    out = []
    for k, size in enumerate(SIZES):
        groups, who = [], []
        for p in np.unique(s):
            q = np.flatnonzero(s == p)
            for i in range(0, len(q) - size + 1, size):
                groups.append(q[i:i + size]); who.append(p)
        i, j = np.triu_indices(len(groups), 1)
        same = np.array(who)[i] == np.array(who)[j] if len(groups) > 1 else np.zeros(0, bool)
        if same.any() and not same.all():
            out.append((k, torch.tensor(np.stack(groups)), torch.tensor(i), torch.tensor(j), torch.tensor(same)))
    return out


def cosines(e, t):
    v = F.normalize(e[t[1]].mean(1), dim=1)
    return (v[t[2]] * v[t[3]]).sum(1)


def measure(m, data, plans):
    """EER in % by size, pairs of all conversations under one threshold"""
    same, other = [[] for _ in SIZES], [[] for _ in SIZES]
    with torch.no_grad():
        for (_, e), plan in zip(data, plans):
            for t in plan:
                c = cosines(torch.from_numpy(e) @ m, t).numpy()
                same[t[0]].append(c[t[4].numpy()]); other[t[0]].append(c[~t[4].numpy()])
    return ' '.join('%.1f' % eer(np.concatenate(a), np.concatenate(b)) if a else '-' for a, b in zip(same, other))


def train(data, plans, start, steps, batch, lr, hold, seed, tell):
    rng = np.random.RandomState(seed)
    m = start.clone().requires_grad_()
    threshold = torch.tensor([.3] * len(SIZES), requires_grad=True)
    steep = torch.tensor([2.3] * len(SIZES), requires_grad=True)
    opt = torch.optim.Adam([dict(params=[m]), dict(params=[threshold, steep], lr=.02)], lr=lr)
    mean = 0.
    for step in range(1, steps + 1):
        opt.param_groups[0]['lr'] = lr * max(.02, 1 - step / steps)
        loss, n = 0., 0
        for q in rng.choice(len(data), min(batch, len(data)), replace=False):
            e = torch.from_numpy(data[q][1]) @ m
            for t in plans[q]:
                x = steep[t[0]].exp() * (cosines(e, t) - threshold[t[0]])
                loss = loss + .5 * F.softplus(-x[t[4]]).mean() + .5 * F.softplus(x[~t[4]]).mean()
                n += 1
        (loss / n + hold * ((m - start) ** 2).sum()).backward()
        opt.step(); opt.zero_grad()
        mean += loss.item() / n
        if step % 25 == 0:
            tell('step %3d  loss %.4f' % (step, mean / 25), m)
            mean = 0.
    return m.detach()


def fold(ema, m):
    """the state of an Embedder whose vectors are those of `ema` times m, before they are scaled to length 1"""
    e = dict(ema)
    g = ema['bno.weight'].double() / (ema['bno.running_var'].double() + 1e-5).sqrt()
    bias = ema['bno.bias'].double() - ema['bno.running_mean'].double() * g
    mt = m.double().t()
    e['fc.weight'] = (mt @ (g[:, None] * ema['fc.weight'].double())).float()
    e['bno.bias'] = (mt @ bias).float()
    e['bno.weight'] = torch.ones(len(g)); e['bno.running_mean'] = torch.zeros(len(g)); e['bno.running_var'] = torch.full((len(g),), 1. - 1e-5)
    return e


def main():
    ap = argparse.ArgumentParser()
    for o in ('pieces', 'rttm', 'embedder', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--check', default='', help='PIECES=FOLDER of conversations that are only measured')
    ap.add_argument('--steps', type=int, default=100); ap.add_argument('--batch', type=int, default=100)
    ap.add_argument('--lr', type=float, default=1e-3); ap.add_argument('--hold', type=float, default=.02)
    ap.add_argument('--ridge', type=float, default=1.); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    data = read(a.pieces, a.rttm.split(','))
    plans = [trials(s) for s, _ in data]
    check = []
    if a.check:
        path, folder = a.check.split('=')
        check = read(path, folder.split(','))
    check_plans = [trials(s) for s, _ in check]
    print('%d conversations, %d pieces of one person; %d and %d to check' % (len(data), sum(len(s) for s, _ in data), len(check), sum(len(s) for s, _ in check)))

    def tell(what, m):
        print('%-24s EER %s   check %s' % (what, measure(m, data, plans), measure(m, check, check_plans)), flush=True)
    tell('as it is', torch.eye(128))
    start = torch.from_numpy(wccn(within(data), a.ridge).astype(np.float32))
    tell('WCCN', start)
    m = train(data, plans, start, a.steps, a.batch, a.lr, a.hold, a.seed, tell)
    ck = torch.load(a.embedder)
    ck['ema'] = fold(ck['ema'], m)
    os.makedirs(a.out, exist_ok=True)
    torch.save(ck, os.path.join(a.out, 'embedder.pt'))
    np.save(os.path.join(a.out, 'map.npy'), m.numpy())


if __name__ == '__main__':
    main()
