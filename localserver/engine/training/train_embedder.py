"""Trains the embedder on simulated conversations: one pass of the trunk over a conversation, many masks pooled from it.

Loss: AAM softmax over speakers x speed variants, and a contrastive loss whose negatives come from the same conversation and the
same corpus and whose positives count more when they come from another room. Continues from its own checkpoint when there is one."""
import argparse
import math
import multiprocessing as mp
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import features as FT
import turns as T
from measure_embedder import dev_eer, dev_set, pieces, recordings
from networks import Embedder, calibrate_bn, load_prototype
from simulate import Simulator, start_state
from voices import Voices

SPEEDS = (.9, 1., 1.1)


def masks_of(rng, lab, k, most):
    """disjoint pieces of lone speech per speaker -> [(speaker, mask [T])]; some with shifted edges or with overlapped frames in them"""
    lone = lab & (lab.sum(1, keepdims=True) == 1)
    out = []
    for s in range(k):
        src = lab[:, s] if rng.random() < .15 else lone[:, s]
        i, a, n = np.flatnonzero(src), 0, 0
        while a < len(i) - 35 and n < most:
            u = rng.random()
            L = int(100 * (rng.uniform(.4, 1.) if u < .28 else rng.uniform(1., 2.) if u < .7 else rng.uniform(2., 3.5)))
            j = i[a:a + L]
            j = j[j < j[0] + 480]
            a += len(j) + int(rng.integers(0, 60))
            if len(j) < 35:
                continue
            m = np.zeros(len(lab), np.float32)
            m[j] = 1
            if rng.random() < .25:                                    # the mask of a real segmenter is late, early or too wide
                d = int(rng.integers(-25, 26))
                m = np.maximum(m, np.roll(m, d)) if rng.random() < .5 else np.roll(m, d)
            out.append((s, m))
            n += 1
    return out


def worker(q, a, seed, prior):
    torch.set_num_threads(1)
    sim = Simulator(Voices(a.store, 'train'), T.load_templates(a.templates), a.noise, seed)
    r = sim.rng
    corpora = {c: i for i, c in enumerate(sim.v.corpora)}
    frames, steps = int(a.seconds * 100) - 2, int(a.seconds * 25)
    born = time.time()
    while True:
        if time.time() - born > 900:                                  # new rooms, noises and events now and then
            sim.b = type(sim.b)(r, sim.v, a.noise, 40, 25, 40, 300, 100)
            born = time.time()
        X = np.zeros((a.convs, frames, 64), np.float16)
        M = np.zeros((a.convs, a.masks, steps), np.float32)
        Y = np.full((a.convs, a.masks), -1, np.int64)
        C = np.zeros((a.convs, a.masks), np.int64)
        ids = None
        for b in range(a.convs):
            k = int(r.choice([2, 3, 4], p=[.25, .45, .3]))
            if ids is None or b % 2 == 0 or r.random() < .3:
                ids = sim.v.pick(r, k, same=.8)
                speeds = [SPEEDS[r.integers(3)] for _ in ids]
            turns = T.dense(r, a.seconds, len(ids), .7, 3.5, overlap=.22)
            y, lab, _, _ = sim.conversation(a.seconds, turns, ids, speeds, snr=r.uniform(4, 32), hard=r.random() < .5)
            f = FT.logmel(y)
            st = start_state(r, f, prior)
            X[b] = FT.normalise(f, *st)
            pm = masks_of(r, lab[:frames, :len(ids)], len(ids), 5)
            pm = [pm[i] for i in r.permutation(len(pm))[:a.masks]]
            for j, (s, m) in enumerate(pm):
                m = np.pad(m, (0, 4 * steps - frames)).reshape(steps, 4).mean(1)
                if m.sum() > 3:
                    M[b, j] = m
                    Y[b, j] = ids[s] * 3 + SPEEDS.index(speeds[s])
                    C[b, j] = corpora[sim.v.speakers[ids[s]][0]]
        q.put((X, M, Y, C))


def pool_many(net, h, M):
    """Attentive mean and deviation of many masks of one conversation by matrix products: h [B, TRUNK, T], M [B, n, T] -> [B, n, 2 TRUNK]"""
    e = net.att2(torch.tanh(net.att1(h)))
    w = torch.exp(e - e.amax(2, keepdim=True).detach()).transpose(1, 2)
    x = h.transpose(1, 2)
    s0 = (M @ w).clamp_min(1e-6)
    mu = (M @ (w * x)) / s0
    return torch.cat([mu, ((M @ (w * x * x)) / s0 - mu * mu).clamp_min(1e-5).sqrt()], 2)


class Heads(nn.Module):
    def __init__(self, dim, classes, scale=28.):
        super().__init__()
        self.w = nn.Parameter(torch.randn(classes, dim) * .05)
        self.s = nn.Parameter(torch.tensor(12.))
        self.scale = scale

    def forward(self, e, y, c, g, margin):
        """-> AAM softmax of the masks whose voice y is one of the classes, contrastive loss of all masks"""
        k = y < len(self.w)
        cos = (e[k] @ F.normalize(self.w).t()).clamp(-.9999, .9999)
        t = cos.gather(1, y[k, None])
        phi = t * math.cos(margin) - (1 - t * t).sqrt() * math.sin(margin)
        phi = torch.where(t > math.cos(math.pi - margin), phi, t - margin * math.sin(margin))
        aam = F.cross_entropy(self.scale * cos.scatter(1, y[k, None], phi), y[k], reduction='sum') / k.sum().clamp_min(1)
        S = self.s.clamp(5., 40.) * (e @ e.t())
        same, conv = y[:, None] == y[None], g[:, None] == g[None]
        neg = ~same & (c[:, None] == c[None])
        pos = same & ~torch.eye(len(y), dtype=torch.bool)
        ln = torch.logsumexp((S + conv * math.log(4.)).masked_fill(~neg, -1e4), 1, keepdim=True)
        w = pos.float() * (1. + 2. * (~conv))
        con = (w * (torch.logaddexp(ln, S) - S)).sum() / w.sum().clamp_min(1.)
        return aam, con


@torch.no_grad()
def class_centres(net, voices, each=2, seed=0, speeds=SPEEDS):
    """mean embedding of `each` clean pieces of every speaker and speed"""
    r = np.random.default_rng(seed)
    out, X, n = [], [], 0
    for i in range(len(voices.speakers)):
        for v in speeds:
            for _ in range(each):
                x, _ = voices.read(r, i, 220, v)
                f = FT.logmel(np.resize(x, 35440) * .05)
                X.append(f - f.mean(0))
        if len(X) >= 120 or i == len(voices.speakers) - 1:
            h = net.trunk(torch.from_numpy(np.stack(X)))
            e = net.head(h, torch.ones(len(X), h.shape[2]))
            out.append(F.normalize(e.view(-1, each, e.shape[1]).mean(1)))
            X = []
    return torch.cat(out)


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--init', help="the prototype's embedder.npz"); ap.add_argument('--real', help='folder of recordings with RTTM, to watch')
    ap.add_argument('--minutes', type=float, default=36); ap.add_argument('--lr', type=float, default=1.2e-3); ap.add_argument('--wd', type=float, default=.03)
    ap.add_argument('--margin', type=float, default=.18); ap.add_argument('--convs', type=int, default=14); ap.add_argument('--seconds', type=float, default=12)
    ap.add_argument('--masks', type=int, default=14); ap.add_argument('--every', type=float, default=4); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, 'embedder.pt')
    voices = Voices(a.store, 'train')
    net, ema = Embedder(), Embedder()
    heads = Heads(128, 3 * len(voices.speakers))
    old = torch.load(path) if os.path.exists(path) else None
    if old:
        prior = old['prior']
    else:
        s = Simulator(voices, T.load_templates(a.templates), a.noise, 1000)
        prior = np.mean([FT.logmel(s.conversation(10.)[0]).mean(0) for _ in range(150)], 0)
        del s
    q = mp.Queue(10)
    p = mp.Process(target=worker, args=(q, a, a.seed * 1000 + int(time.time()) % 997 * (old is not None), prior), daemon=True)
    p.start()
    dev = dev_set(Simulator(Voices(a.store, 'dev'), T.load_templates(a.templates), a.noise, 5), 60)
    recs = recordings(a.real) if a.real else []

    def watch(n):
        n.eval()
        s = '  dev EER ' + ' '.join('%.1f s %.2f' % x for x in dev_eer(n, dev, prior).items())
        if recs:
            s += ' | real pieces 1.5 s %.1f, 3 s %.1f' % (pieces(n, recs, prior)[0], pieces(n, recs, prior, 3.)[0])
        print(s, flush=True)
    if old:
        net.load_state_dict(old['net']); ema.load_state_dict(old['ema']); heads.load_state_dict(old['heads'])
    elif a.init:
        load_prototype(net, a.init)
        watch(net)
        t = time.time()
        heads.w.data.copy_(class_centres(net, voices))
        cal = [q.get() for _ in range(6)]

        def run():
            for X, M, Y, _ in cal:
                z = pool_many(net, net.trunk(torch.from_numpy(X.astype(np.float32))), torch.from_numpy(M))
                net.bno(net.fc(net.bnp(z[torch.from_numpy(Y) >= 0])))
        calibrate_bn(net, run)
        ema.load_state_dict(net.state_dict())
        print('class centres and batch norm measured in %.0f s' % (time.time() - t), flush=True)
        watch(net)
    net.bf16 = True
    mats = [p for p in net.parameters() if p.ndim > 1] + [heads.w]
    rest = [p for p in net.parameters() if p.ndim <= 1] + [heads.s]
    opt = torch.optim.AdamW([dict(params=mats, weight_decay=a.wd), dict(params=rest, weight_decay=0.)], lr=a.lr, betas=(.9, .98))
    it, spent = 0, 0.
    if old:
        opt.load_state_dict(old['opt']); it, spent = old['it'], old['spent']
    t0, mark, wait, acc = time.time() - spent, spent + a.every * 60, 0., np.zeros(4)

    def save():
        torch.save(dict(net=net.state_dict(), ema=ema.state_dict(), heads=heads.state_dict(), opt=opt.state_dict(), it=it, spent=time.time() - t0,
                        prior=prior, args=vars(a)), path + '.tmp')
        os.replace(path + '.tmp', path)
    while True:
        el = time.time() - t0
        fr = el / (a.minutes * 60)
        if fr >= 1:
            break
        for g in opt.param_groups:
            g['lr'] = a.lr * min(1, it / 150. + .02) * (.5 + .5 * math.cos(math.pi * fr)) + 1e-5
        t = time.time(); X, M, Y, C = q.get(); wait += time.time() - t
        X = torch.from_numpy(X.astype(np.float32))
        if it % 2:
            b = int(np.random.randint(0, 58)); X[:, :, b:b + int(np.random.randint(1, 7))] = 0
        net.train()
        y = torch.from_numpy(Y)
        ok = y >= 0
        z = pool_many(net, net.trunk(X), torch.from_numpy(M))[ok]
        e = F.normalize(net.bno(net.fc(net.bnp(z))))
        g = torch.arange(a.convs)[:, None].expand_as(y)[ok]
        aam, con = heads(e, y[ok], torch.from_numpy(C)[ok], g, a.margin * min(1., fr / .4 + .3))
        opt.zero_grad(set_to_none=True)
        (aam + con).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.)
        opt.step()
        it += 1
        d = min(.998, it / (it + 20.))
        with torch.no_grad():
            for v, w in zip(ema.state_dict().values(), net.state_dict().values()):
                v.mul_(d).add_(w, alpha=1 - d) if v.dtype.is_floating_point else v.copy_(w)
        acc += (aam.item(), con.item(), len(e), 1)
        if it % 100 == 0:
            print('%5.0f s step %d aam %.3f con %.3f masks %.0f wait %.0f s lr %.5f s %.1f' % (time.time() - t0, it, acc[0] / acc[3], acc[1] / acc[3], acc[2] / acc[3], wait, opt.param_groups[0]['lr'], heads.s.item()), flush=True)
            acc[:] = 0; wait = 0.
        if time.time() - t0 > mark:
            watch(ema); save(); mark += a.every * 60
    watch(ema); save()
    print('done: %d steps' % it)
    p.terminate()


if __name__ == '__main__':
    main()
