"""Trains the segmenter on top of the frozen embedder trunk.

Every simulated piece of 8 s gives two windows: the first 5 s (start of a stream, true right context) and the last 5 s, which end
where the audio ends, as in the live engine. Loss: cross entropy over the 7 classes under the best of 6 permutations, heavier
0.5 .. 1.5 s before the end, and an auxiliary loss that pairs of frames of one voice be alike (training only)."""
import argparse
import itertools
import math
import multiprocessing as mp
import os
import time
import numpy as np
import scipy.fft as sfft
import torch
import torch.nn as nn
import torch.nn.functional as F
import features as FT
import turns as T
from acoustics import HOP, response
from measure_embedder import recordings
from measure_segmenter import SETS, Tally, POWER, every, measure, network_post, reference
from networks import CLASSES, WINDOW, Embedder, Segmenter
from simulate import Simulator, start_state
from voices import Voices, stretch

SECONDS = 8
REAL = ('ami_trn', 'ami_dev', 'sample', 'four', 'falcon')
STARTS = (0, SECONDS - 5)
PERMS = torch.tensor([[CLASSES.index(tuple(sorted(p[i] for i in c))) for c in CLASSES] for p in itertools.permutations(range(3))])


def targets(lab):
    """bool [10 ms, k] of one window -> classes of 20 ms frames [250]; -1 where a fourth voice talks"""
    lab = lab[1::2]
    order = np.argsort(-lab.sum(0))
    y = FT.powerset_of(lab[:, order[:3]])
    if lab.shape[1] > 3:
        y[lab[:, order[3:]].any(1)] = -1
    return y


def real_piece(rng, recs, sim, seconds=SECONDS):
    """`seconds` of a labelled recording at another speed, level and colour, with a little noise, at times with a second place of it below"""
    n = int(seconds * 16000)

    def cut(speed):
        _, x, turns = recs[rng.integers(len(recs))]
        ref = reference(turns, len(x) // 320).repeat(2, 0)
        need = int(seconds * 100 * speed) + 8
        s = int(rng.integers(0, len(ref) - need + 1))
        y = x[s * HOP:(s + need) * HOP]
        y = stretch(y, speed)[:n] if speed != 1. else y[:n]
        return y / (np.sqrt((y * y).mean()) + 1e-6), ref[s + np.minimum((np.arange(seconds * 100) * speed).astype(int), need - 1)]
    y, lab = cut(rng.uniform(.88, 1.14) if rng.random() < .7 else 1.)
    if rng.random() < .15:
        z, other = cut(rng.uniform(.88, 1.14))
        y, lab = y + z * 10 ** (rng.uniform(-8, 0) / 20), np.concatenate([lab, other], 1)
    L = sfft.next_fast_len(n + 7200, real=True)
    Y = sfft.rfft(y, L)
    if rng.random() < .7:
        Y = Y * sim.curve(response(rng, 3.), L)
    if rng.random() < .2:
        Y = Y * sfft.rfft(sim.room()()[1], L)
    y = sfft.irfft(Y, L)[:n]
    y = y / (np.sqrt((y * y).mean()) + 1e-6)
    if rng.random() < .5:
        y = y + sim.b.noise(rng, n) * 10 ** (-rng.uniform(15, 40) / 20)
    if rng.random() < .3:
        y = sim.negatives(y.astype(np.float32), n, False)
    return (y * 10 ** (rng.uniform(-45, -18) / 20)).astype(np.float32), lab


def make_batch(sim, n, prior, recs=(), share=0.):
    r = sim.rng
    X = np.zeros((n, SECONDS * 100 - 2, 64), np.float16)
    Y = np.zeros((len(STARTS), n, 250), np.int8)
    for b in range(n):
        if len(recs) and r.random() < share:
            y, lab = real_piece(r, recs, sim)
        else:
            y, lab, _, _ = sim.conversation(float(SECONDS), sim.turns_for(float(SECONDS), 3 if r.random() < .85 else 4))
        f = FT.logmel(y)
        X[b] = FT.normalise(f, *start_state(r, f, prior))
        for i, s in enumerate(STARTS):
            Y[i, b] = targets(lab[s * 100:s * 100 + 500])
    return X, Y


def worker(q, a, seed, prior):
    torch.set_num_threads(1)
    sim = Simulator(Voices(a.store, 'train'), T.load_templates(a.templates), a.noise, seed)
    recs = recordings(os.path.join(a.speech, 'real-dev'), SETS['ami_trn'][1]) if a.real_share > 0 else []
    sim.kinds = (.44, .48, .08)
    born = time.time()
    while True:
        if time.time() - born > 900:
            sim.b = type(sim.b)(sim.rng, sim.v, a.noise, 40, 25, 40, 300, 100)
            born = time.time()
        q.put(make_batch(sim, a.batch, prior, recs, a.real_share))


def window_weights(kinds):
    """How much each frame of a window counts [kinds, 1, 250]; the last kind ends at "now", and is committed 0.5 to 1.5 s before that."""
    w = torch.ones(kinds, 1, 250)
    w[-1, :, 225:] = .6
    w[-1, :, 175:225] = 1.6
    return w


def pit(logp, y, w):
    """logp [W, n, 7], y [W, n] (-1: not counted), w [W, n] -> mean over windows of the best permutation's cross entropy"""
    w = w * (y >= 0)
    t = PERMS[:, y.clamp_min(0)]
    ce = torch.stack([-(logp.gather(2, p[..., None])[..., 0] * w).sum(1) for p in t]) / w.sum(1).clamp_min(1.)
    return ce.min(0).values.mean()


def pair_loss(z, y, scale, bias):
    """z [W, T, d] of unit length, y [W, 2T]: same voice or not, for pairs of 40 ms frames where one voice talks alone"""
    a, b = y[:, 0::2], y[:, 1::2]
    ok = (a == b) & (a >= 1) & (a <= 3)
    m = ok[:, :, None] & ok[:, None]
    same = (a[:, :, None] == a[:, None])
    l = F.binary_cross_entropy_with_logits(scale * (z @ z.transpose(1, 2)) + bias, same.float(), reduction='none')
    p, n = m & same, m & ~same
    return .5 * ((l * p).sum() / p.sum().clamp_min(1) + (l * n).sum() / n.sum().clamp_min(1))


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'out', 'embedder', 'speech'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--init'); ap.add_argument('--minutes', type=float, default=50); ap.add_argument('--lr', type=float, default=2.2e-3)
    ap.add_argument('--wd', type=float, default=.01); ap.add_argument('--batch', type=int, default=56); ap.add_argument('--pair', type=float, default=.3)
    ap.add_argument('--real-share', type=float, default=0.); ap.add_argument('--every', type=float, default=5); ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--decay', type=float, default=.999)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, 'segmenter.pt')
    ck = torch.load(a.embedder)
    emb, prior = Embedder().eval(), ck['prior']
    emb.load_state_dict(ck['ema'])
    for p in emb.parameters():
        p.requires_grad_(False)
    old = torch.load(path) if os.path.exists(path) else None
    q = mp.Queue(10)
    p = mp.Process(target=worker, args=(q, a, a.seed * 1000 + 7 + int(time.time()) % 997 * (old is not None), prior), daemon=True)
    p.start()
    sim = Simulator(Voices(a.store, 'dev'), T.load_templates(a.templates.replace('train', 'dev')), a.noise, 9)
    dX, dY = make_batch(sim, 160, prior)
    del sim
    watched = {k: (recordings(os.path.join(a.speech, f), o), {}) for k, (f, o) in SETS.items()}
    net, ema, aux = Segmenter(), Segmenter(), nn.Conv1d(96, 32, 1)
    sb = nn.Parameter(torch.tensor([6., -2.]))
    if old or a.init:
        s = old or torch.load(a.init)
        net.load_state_dict(s['net' if old else 'ema']); aux.load_state_dict(s['aux']); sb.data.copy_(s['sb'])
        ema.load_state_dict(s['ema'])
    params = list(net.parameters()) + list(aux.parameters())
    opt = torch.optim.AdamW([dict(params=params, weight_decay=a.wd), dict(params=[sb], weight_decay=0.)], lr=a.lr, betas=(.9, .98))
    it, spent = 0, 0.
    if old:
        opt.load_state_dict(old['opt']); it, spent = old['it'], old['spent']
    t0, mark, wait, acc = time.time() - spent, spent + a.every * 60, 0., np.zeros(3)
    weight = window_weights(len(STARTS))

    def watch():
        ema.eval()
        t = Tally(); ls = []
        with torch.no_grad():
            for i in range(0, len(dX), 40):
                f = torch.from_numpy(dX[i:i + 40].astype(np.float32))
                x = ema.stream(f, emb.trunk(f))
                lp = ema.window(x[:, -WINDOW:])
                y = torch.from_numpy(dY[1, i:i + 40].astype(np.int64))
                ls.append(pit(lp, y, torch.ones(len(y), 250)).item())
                for g, h in zip(lp.argmax(2).numpy(), y.clamp_min(0).numpy()):
                    t.add(POWER[h], POWER[g])
        print('   simulated windows of dev speakers: loss %.3f %s' % (np.mean(ls), t.row()), flush=True)
        for k, (recs, cache) in watched.items():
            print('   %-8s %s' % (k, measure(network_post(emb, ema, prior, cache), recs, every(1. if k in REAL else 6.)).row()), flush=True)

    def save():
        torch.save(dict(net=net.state_dict(), ema=ema.state_dict(), aux=aux.state_dict(), sb=sb.data, opt=opt.state_dict(), it=it, spent=time.time() - t0,
                        trunk=emb.state_dict(), prior=prior, args=vars(a)), path + '.tmp')
        os.replace(path + '.tmp', path)
    emb.bf16 = True
    while True:
        el = time.time() - t0
        fr = el / (a.minutes * 60)
        if fr >= 1:
            break
        opt.param_groups[0]['lr'] = opt.param_groups[1]['lr'] = a.lr * min(1, it / 100. + .02) * (.5 + .5 * math.cos(math.pi * fr)) + 1e-5
        t = time.time(); X, Y = q.get(); wait += time.time() - t
        f, y = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(Y.astype(np.int64))
        if it % 3 == 0:
            b = int(np.random.randint(0, 58)); f[:, :, b:b + int(np.random.randint(1, 7))] = 0
        with torch.no_grad():
            h = emb.trunk(f)
        net.train()
        x = net.stream(f, h)
        n = WINDOW if np.random.rand() < .8 else int(np.random.randint(15, WINDOW))  # short windows: the first seconds of a stream
        parts = [(x[:, :n], y[0][:, :2 * n], weight[0, :, :2 * n]), (x[:, -WINDOW:], y[1], weight[1])]
        if n == WINDOW:
            parts = [(torch.cat([p_[0] for p_ in parts]), y.flatten(0, 1), weight.expand(2, len(X), 250).flatten(0, 1))]
        loss = sum(pit(net.window(u), v, w.expand(len(v), -1)) * len(v) for u, v, w in parts) / (2 * len(X))
        z = F.normalize(aux(x[:, -WINDOW:].transpose(1, 2)).transpose(1, 2), dim=2)
        pl = pair_loss(z, y[1], sb[0], sb[1])
        opt.zero_grad(set_to_none=True)
        (loss + a.pair * pl).backward()
        nn.utils.clip_grad_norm_(params, 3.)
        opt.step()
        it += 1
        d = min(a.decay, it / (it + 10.))
        with torch.no_grad():
            for v, w in zip(ema.state_dict().values(), net.state_dict().values()):
                v.mul_(d).add_(w, alpha=1 - d) if v.dtype.is_floating_point else v.copy_(w)
        acc += (loss.item(), pl.item(), 1)
        if it % 100 == 0:
            print('%5.0f s step %d loss %.4f pair %.3f wait %.0f s lr %.5f' % (time.time() - t0, it, acc[0] / acc[2], acc[1] / acc[2], wait, opt.param_groups[0]['lr']), flush=True)
            acc[:] = 0; wait = 0.
        if time.time() - t0 > mark:
            watch(); save(); mark += a.every * 60
    watch(); save()
    print('done: %d steps' % it)
    p.terminate()


if __name__ == '__main__':
    main()
