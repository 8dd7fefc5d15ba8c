"""Trains the segmenter alone on stretches.py's folders, from exported weights whose trunk and embedder stay as they are.

The loss is that of train.py: the best permutation's cross entropy of three windows of each stretch, the last of which ends at "now", and of pairs of frames.
The learning rate is a function of the step alone. OUT/train.pt is written every --save minutes and continued from when the program starts again;
folders that have appeared under --stretches since are trained on from then on. OUT/embedder.pt and OUT/segmenter.pt are what export.py reads."""
import argparse
import glob
import math
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from losses import pair_loss, pit, window_weights
from networks import TRUNK, WINDOW, Embedder, Segmenter, calibrate_bn
from restore import restore
from stretches import LENGTH
from targets import classes
from train import STEPS, average_into


class Stretches:
    """The stretches of all folders under one, memory-mapped."""

    def __init__(self, folder):
        self.folder, self.parts = folder, {}
        self.look()

    def look(self):
        """takes in the folders that are complete"""
        for d in sorted(glob.glob(os.path.join(self.folder, '*'))):
            if d not in self.parts and not d.endswith('.part'):
                shapes = (('frames', '<f2', (-1, LENGTH, 64)), ('trunk', '<f2', (-1, TRUNK, STEPS)), ('voices', np.uint8, (-1, LENGTH)))
                files = [os.path.join(d, n + ('.u8' if n == 'voices' else '.f16')) for n, _, _ in shapes]
                self.parts[d] = [np.memmap(f, t, 'r').reshape(s) for f, (_, t, s) in zip(files, shapes)]
        self.index = [(d, i) for d, p in self.parts.items() for i in range(len(p[2]))]

    def batch(self, rng, which, at):
        """-> frames [n, 1000, 64], trunk [n, 768, 250], classes of three windows [3, n, 250]: the first, one `at` 40 ms steps later, the last"""
        X, H, W = [], [], np.empty((3, len(which), 2 * WINDOW), np.int64)
        for k, i in enumerate(which):
            d, j = self.index[i]
            x, h, v = (p[j] for p in self.parts[d])
            X.append(x); H.append(h)
            active = np.unpackbits(v[:, None], axis=1, bitorder='little').astype(bool)
            for w, s in enumerate((0, 4 * at, 500)):
                W[w, k] = classes(active[s:s + 500])
        return torch.from_numpy(np.stack(X).astype(np.float32)), torch.from_numpy(np.stack(H).astype(np.float32)), torch.from_numpy(W)


class Losses:
    def __init__(self, pair):
        self.pair, self.weight = pair, window_weights(3)

    def __call__(self, seg, aux, sb, X, H, W, at, first=0):
        """first: also of a window of so many steps, as in the first seconds of a stream"""
        x, n = seg.stream(X, H), len(X)
        u = torch.cat([x[:, s:s + WINDOW] for s in (0, at, STEPS - WINDOW)])
        loss = pit(seg.window(u), W.flatten(0, 1), self.weight.expand(3, n, 2 * WINDOW).flatten(0, 1))
        if first:
            loss = .7 * loss + .3 * pit(seg.window(x[:, :first]), W[0][:, :2 * first], self.weight[0, :, :2 * first].expand(n, -1))
        z = F.normalize(aux(x[:, -WINDOW:].transpose(1, 2)).transpose(1, 2), dim=2)
        return loss, loss + self.pair * pair_loss(z, W[2], sb[0], sb[1])


@torch.no_grad()
def held_out(losses, seg, aux, sb, folder):
    """the mean loss of each folder of stretches that are not trained on"""
    seg.eval()
    s, out = Stretches(folder), []
    for d in s.parts:
        which = [i for i, (e, _) in enumerate(s.index) if e == d]
        batches = [which[i:i + 32] for i in range(0, len(which), 32)]
        out.append('%s %.4f' % (os.path.basename(d), sum(losses(seg, aux, sb, *s.batch(None, b, 60), 60)[0].item() * len(b) for b in batches) / len(which)))
    return ' '.join(out)


def main():
    ap = argparse.ArgumentParser()
    for o in ('stretches', 'held-out', 'init', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--steps', type=int, required=True); ap.add_argument('--lr', type=float, default=7e-4); ap.add_argument('--wd', type=float, default=.03); ap.add_argument('--batch', type=int, default=32)
    ap.add_argument('--pair', type=float, default=.3); ap.add_argument('--save', type=float, default=10, help='minutes'); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    path, data, losses = os.path.join(a.out, 'train.pt'), Stretches(a.stretches), Losses(a.pair)
    old = torch.load(path) if os.path.exists(path) else None
    emb, seg, aux, sb, mean = Embedder().eval(), Segmenter(), nn.Conv1d(96, 32, 1), nn.Parameter(torch.tensor([6., -2.])), Segmenter()
    prior, it, spent = restore(a.init, emb, seg), 0, 0.
    params = [v for m in (seg, aux) for v in m.parameters()] + [sb]
    opt = torch.optim.AdamW([dict(params=[v for v in params if (v.ndim > 1) == big], weight_decay=a.wd * big) for big in (True, False)], lr=a.lr, betas=(.9, .98))
    if old:
        for m, k in ((seg, 'seg'), (aux, 'aux'), (mean, 'mean'), (opt, 'opt')):
            m.load_state_dict(old[k])
        sb.data.copy_(old['sb']); it, spent = old['it'], old['spent']
    else:
        print('before ' + held_out(losses, seg, aux, sb, a.held_out), flush=True)
        rng = np.random.default_rng(a.seed)
        calibrate_bn(seg, lambda: [seg.stream(*data.batch(rng, rng.integers(0, len(data.index), 32), 60)[:2]) for _ in range(12)])
        mean.load_state_dict(seg.state_dict())
    t0, saved, acc, since = time.time() - spent, time.time(), 0., it

    def save():
        common = dict(it=it, spent=time.time() - t0, prior=prior)
        torch.save(dict(seg=seg.state_dict(), aux=aux.state_dict(), mean=mean.state_dict(), sb=sb.data, opt=opt.state_dict(), args=vars(a), **common), path + '.tmp')
        os.replace(path + '.tmp', path)
        torch.save(dict(ema=emb.state_dict(), **common), os.path.join(a.out, 'embedder.pt'))
        torch.save(dict(ema=mean.state_dict(), trunk=emb.state_dict(), **common), os.path.join(a.out, 'segmenter.pt'))
        print('step %d held out: %s' % (it, held_out(losses, mean, aux, sb, a.held_out)), flush=True)
    while it < a.steps:
        rate = a.lr * min(1, it / 200. + .02) * (.5 + .5 * math.cos(math.pi * it / a.steps)) + 1e-6
        for g in opt.param_groups:
            g['lr'] = rate
        seg.train()
        rng = np.random.default_rng([a.seed, it])
        at = int(rng.integers(1, 5)) * 25
        l, loss = losses(seg, aux, sb, *data.batch(rng, rng.integers(0, len(data.index), a.batch), at), at, int(rng.integers(15, WINDOW)) if it % 5 == 0 else 0)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 6.)
        opt.step()
        it += 1
        average_into(mean, seg, min(.998, it / (it + 20.)))
        acc += l.item()
        if it % 100 == 0:
            data.look()
            print('%5.0f s step %d loss %.4f lr %.6f of %d stretches' % (time.time() - t0, it, acc / (it - since), rate, len(data.index)), flush=True)
            acc, since = 0., it
        if time.time() - saved > a.save * 60 and it < a.steps:
            save(); saved = time.time()
    save()


if __name__ == '__main__':
    main()
