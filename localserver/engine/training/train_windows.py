"""Trains the segmenter on from exported weights, the trunk frozen, on what hear.py has kept: the trunk need not be run again,
and the embeddings stay what they are.

train_windows.py --weights W.hubw --heard H,... --speech SPEECH --out OUT      (OUT/windows.pt and OUT/embedder.pt are for export.py)

Losses and windows are those of train_joint.py: of each stretch of 10 s the first 5 s, 5 s somewhere, and the last 5 s, which end at "now". A tenth
of the trunk's channels is dropped in each stretch: it knows the training speakers better than others."""
import argparse
import math
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import export
from hear import LABELS
from measure_embedder import recordings
from measure_segmenter import SETS, every, measure, network_post
from networks import TRUNK, WINDOW, Embedder, Segmenter, calibrate_bn
from restore import restore
from train_joint import FRAMES, STEPS, average_into
from train_segmenter import pair_loss, pit, targets, window_weights

BITS = (1 << np.arange(8)).astype(np.uint8)


class Heard:
    """stretches of hear.py, in an order of their own each time round"""

    def __init__(self, folders, seed):
        self.rng, self.parts, self.index, self.order = np.random.default_rng(seed), [], [], []
        for k, d in enumerate(folders):
            who = np.fromfile(os.path.join(d, 'who.u8'), np.uint8).reshape(-1, LABELS)
            n = len(who)
            self.parts.append((np.memmap(os.path.join(d, 'frames.f16'), np.float16, 'r', shape=(n, FRAMES, 64)),
                               np.memmap(os.path.join(d, 'trunk.f16'), np.float16, 'r', shape=(n, TRUNK, STEPS)), who))
            self.index += [(k, i) for i in range(n)]

    def next(self, count):
        """(frames, trunk, classes [3, count, 250] of the three windows, where the one in between begins in steps)"""
        if len(self.order) < count:
            self.order = list(self.rng.permutation(len(self.index)))
        picked = sorted(self.index[self.order.pop()] for _ in range(count))
        at = int(self.rng.integers(1, 5)) * 25
        y = np.zeros((3, count, 250), np.int64)
        for b, (k, i) in enumerate(picked):
            lab = (self.parts[k][2][i][:, None] & BITS) > 0
            for j, s in enumerate((0, at * 4, LABELS - 500)):
                y[j, b] = targets(lab[s:s + 500])
        x, h = (torch.from_numpy(np.stack([self.parts[k][j][i] for k, i in picked]).astype(np.float32)) for j in (0, 1))
        return x, h, torch.from_numpy(y), at


def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'heard', 'speech', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--start', help='checkpoint of an earlier run to begin with')
    ap.add_argument('--minutes', type=float, default=40); ap.add_argument('--lr', type=float, default=1e-3); ap.add_argument('--wd', type=float, default=.02)
    ap.add_argument('--batch', type=int, default=32); ap.add_argument('--pair', type=float, default=.3); ap.add_argument('--dropout', type=float, default=.1)
    ap.add_argument('--every', type=float, default=10); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    np.random.seed(a.seed)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, 'windows.pt')
    emb, seg, ema, aux = Embedder().eval(), Segmenter(), Segmenter(), nn.Conv1d(96, 32, 1)
    sb = nn.Parameter(torch.tensor([6., -2.]))
    prior = restore(a.weights, emb, seg)
    data = Heard(a.heard.split(','), a.seed)
    old = torch.load(path) if os.path.exists(path) else None
    first = torch.load(a.start) if a.start and not old else None
    if first:
        for m, k in ((seg, 'ema'), (ema, 'ema'), (aux, 'aux')):
            m.load_state_dict(first[k])
        sb.data.copy_(first['sb'])
    elif old:
        for m, k in ((seg, 'net'), (ema, 'ema'), (aux, 'aux')):
            m.load_state_dict(old[k])
        sb.data.copy_(old['sb'])
    else:
        some = [data.next(a.batch) for _ in range(6)]
        calibrate_bn(seg, lambda: [seg.stream(x, h) for x, h, _, _ in some])
        ema.load_state_dict(seg.state_dict())
    params = list(seg.parameters()) + list(aux.parameters()) + [sb]
    opt = torch.optim.AdamW([dict(params=[p for p in params if (p.ndim > 1) == big], weight_decay=a.wd * big) for big in (True, False)], lr=a.lr, betas=(.9, .98))
    it, spent = 0, 0.
    if old:
        opt.load_state_dict(old['opt']); it, spent = old['it'], old['spent']
    weight = window_weights(3).expand(3, a.batch, 250)
    watched = {k: (recordings(os.path.join(a.speech, f), o), {}) for k, (f, o) in SETS.items() if k != 'ami_trn'}
    t0, mark, acc = time.time() - spent, spent, np.zeros(3)

    def watch():
        ema.eval()
        for k, (recs, cache) in watched.items():
            print('   %-8s %s' % (k, measure(network_post(emb, ema, prior, cache), recs, every(6. if k.startswith(('sim', 'flu')) else 2.)).row()), flush=True)

    def save():
        torch.save(dict(net=seg.state_dict(), ema=ema.state_dict(), aux=aux.state_dict(), sb=sb.data, opt=opt.state_dict(), it=it, spent=time.time() - t0,
                        trunk=emb.state_dict(), prior=prior, args=vars(a)), path + '.tmp')
        os.replace(path + '.tmp', path)
    made = export.read(a.weights)[0]['meta']['embedder']
    torch.save(dict(ema=emb.state_dict(), it=made['steps'], spent=60. * made['minutes'], prior=prior), os.path.join(a.out, 'embedder.pt'))    # as it was
    while True:
        if time.time() - t0 >= mark:
            if it:
                save()
            t = time.time()
            watch()
            t0 += time.time() - t                                     # measuring takes nothing off the time to learn in
            mark += a.every * 60
        fr = (time.time() - t0) / (a.minutes * 60)
        if fr >= 1:
            break
        for g in opt.param_groups:
            g['lr'] = a.lr * min(1, it / 100. + .02) * (.5 + .5 * math.cos(math.pi * fr)) + 1e-5
        x, h, y, at = data.next(a.batch)
        for _ in range(it % 3):
            b = int(np.random.randint(0, 58)); x[:, :, b:b + int(np.random.randint(1, 7))] = 0
        h = F.dropout1d(h.unflatten(1, (-1, 8)).flatten(2), a.dropout).unflatten(2, (8, -1)).flatten(1, 2)     # whole channels, all 8 bands of them
        seg.train()
        s = seg.stream(x, h)
        sl = pit(seg.window(torch.cat([s[:, k:k + WINDOW] for k in (0, at, STEPS - WINDOW)])), y.flatten(0, 1), weight.flatten(0, 1))
        if it % 5 == 0:                                                # the first seconds of a stream
            n = int(np.random.randint(15, WINDOW))
            sl = .7 * sl + .3 * pit(seg.window(s[:, :n]), y[0][:, :2 * n], weight[0, :, :2 * n])
        z = F.normalize(aux(s[:, -WINDOW:].transpose(1, 2)).transpose(1, 2), dim=2)
        pl = pair_loss(z, y[2], sb[0], sb[1])
        opt.zero_grad(set_to_none=True)
        (sl + a.pair * pl).backward()
        nn.utils.clip_grad_norm_(params, 3.)
        opt.step()
        it += 1
        average_into(ema, seg, min(.999, it / (it + 10.)))
        acc += (sl.item(), pl.item(), 1)
        if it % 100 == 0:
            print('%5.0f s step %d loss %.4f pair %.3f lr %.5f' % (time.time() - t0, it, acc[0] / acc[2], acc[1] / acc[2], opt.param_groups[0]['lr']), flush=True)
            acc[:] = 0
    save(); watch()
    print('done: %d steps' % it)


if __name__ == '__main__':
    main()
