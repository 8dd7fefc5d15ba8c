"""Trains both networks together, from exported weights: one pass of the trunk over a simulated conversation serves the masks of
the embedder and the windows of the segmenter, and both losses shape it.

Losses: those of train_embedder.py (AAM softmax over speakers x speeds, contrastive) + --seg times those of train_segmenter.py
(cross entropy under the best permutation, alike frames). Windows: the last 5 s, which end where the audio ends, as in the live
engine; the first 5 s; and 5 s somewhere. Goes on from its own checkpoint when there is one.

The class centres of the AAM softmax learn by plain gradient descent. Adam makes steps of the same length whatever the gradient,
and a class that is met once in a hundred steps is carried off by the small pushes of the ninety-nine others.

--procs trainers, each with a renderer and conversations of its own, average their gradients at every step (torch.distributed, gloo).
Rendering costs as much as a step: a conversation is used --uses times, some dozens of steps apart."""
import argparse
import math
import multiprocessing as mp
import os
import time
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import export
import features as FT
import turns as T
from grow import grow, wake
from measure_embedder import dev_eer, dev_set, pieces, recordings
from measure_segmenter import SETS, every, measure, network_post
from networks import WINDOW, Embedder, Segmenter, calibrate_bn
from restore import restore
from simulate import Simulator
from train_embedder import Heads, class_centres, masks_of, pool_many
from train_segmenter import pair_loss, pit, real_piece, targets, window_weights
from voices import Tract, Voices

SPEEDS = (.87, 1., 1.15)
SECONDS = 10
STEPS = SECONDS * 25
FRAMES = SECONDS * 100 - 2


def halves(rng, y, prior):
    """20 s -> the frames of its first and its second half, as a stream hears them: from its beginning, or long after, when the running
    mean has heard everybody. (A mean of the half alone would take away what sets its speakers apart.)"""
    f = FT.logmel(y)
    if rng.random() < .65:
        off = np.interp(np.arange(64), [0, 12, 30, 63], rng.normal(0, .15, 4)) + rng.normal(0, .15)
        state = [(FT.settled_mean(f) + off, rng.choice([2000., 6000., FT.MAX_COUNT]))] * 2
    else:
        m, n = FT.running_mean(f[:SECONDS * 100], prior)
        state = [(prior, FT.PRIOR_COUNT), (m[-1], n)]
    return [FT.normalise(f[i * SECONDS * 100:][:FRAMES], *state[i]) for i in range(2)]


def worker(q, a, seed, prior):
    torch.set_num_threads(1)
    sim = Simulator(Voices(a.store, 'train', extra=a.extra), T.load_templates(a.templates), a.noise, seed)
    r, v = sim.rng, sim.v
    recs = recordings(os.path.join(a.speech, 'real-dev'), SETS['ami_trn'][1]) if a.real_share > 0 else []
    corpora = {c: i for i, c in enumerate(v.corpora)}
    strangers = len(SPEEDS) * len(v.speakers)                          # the first number of a voice that is nobody's class
    born = time.time()
    while True:
        if time.time() - born > 900:                                  # new rooms, noises and events now and then
            sim.b = type(sim.b)(r, v, a.noise, 40, 25, 40, 300, 100)
            born = time.time()
        X = np.zeros((a.convs, FRAMES, 64), np.float16)
        M = np.zeros((a.convs, a.masks, STEPS), np.float32)
        Y = np.full((a.convs, a.masks), -1, np.int64)
        C = np.zeros((a.convs, a.masks), np.int64)
        W = np.zeros((3, a.convs, 250), np.int8)                      # classes of the windows: first, anywhere, last
        at = int(r.integers(1, 5)) * 25                               # where the one in between begins, in steps
        ids = speeds = tracts = natural = None
        met = 0                                                       # how often people were picked
        for b in range(0, a.convs, 2):
            if r.random() < a.real_share:
                y, lab = real_piece(r, recs, sim, 2 * SECONDS)
                people = 0
            else:
                most = 3 if r.random() < .8 else 4
                if r.random() < .5:
                    turns = sim.turns_for(2. * SECONDS, most)
                else:
                    turns = T.dense(r, 2 * SECONDS, int(r.choice([2, 3, 4], p=[.4, .4, .2])), .6, 3.5, overlap=.2)
                if r.random() < a.interrupted:
                    turns = T.interrupt(r, turns, 2. * SECONDS)
                people = max([s for _, _, s, _ in turns], default=-1) + 1
                if ids is None or b % 4 == 0 or len(ids) < people:    # every second conversation has the people of the one before, in another room
                    ids = v.pick(r, max(people, 2), same=.8)
                    natural, met = r.random() >= a.strangers, met + 1
                    speeds = [SPEEDS[r.integers(len(SPEEDS))] if natural else r.uniform(.82, 1.22) for _ in ids]
                    tracts = None if natural else [Tract(r) for _ in ids]
                hard = r.random() < .5
                kw = dict(snr=r.uniform(4, 32)) if r.random() < .5 else {}
                if r.random() < a.wander:
                    kw['wander'] = r.uniform(.5, 3.)
                y, lab, _, _ = sim.conversation(2. * SECONDS, turns, ids, speeds, hard=hard, tracts=tracts, fresh=a.fresh, **kw)
            for h, x in enumerate(halves(r, y, prior)):
                X[b + h] = x
                part = lab[h * SECONDS * 100:][:SECONDS * 100]
                for i, s in enumerate((0, at * 4, 500)):
                    W[i, b + h] = targets(part[s:s + 500])
                pm = masks_of(r, part[:FRAMES, :len(ids)], len(ids), 5) if people else []
                pm = [pm[i] for i in r.permutation(len(pm))[:a.masks]]
                for j, (s, m) in enumerate(pm):
                    m = np.pad(m, (0, 4 * STEPS - FRAMES)).reshape(STEPS, 4).mean(1)
                    if m.sum() > 3:
                        M[b + h, j] = m
                        Y[b + h, j] = ids[s] * len(SPEEDS) + SPEEDS.index(speeds[s]) if natural else strangers + met * 8 + s
                        C[b + h, j] = corpora[v.speakers[ids[s]][0]]
        q.put((X, M, Y, C, W, at))


class Replay:
    """Batches of the queue, each given out `uses` times: at once, and again after others."""

    def __init__(self, q, uses, apart=48):
        self.q, self.uses, self.apart, self.n, self.wait, self.again = q, uses, apart, 0, 0., []

    def next(self):
        self.n += 1
        if self.n % self.uses and len(self.again) >= self.apart:
            return self.again.pop(np.random.randint(len(self.again)))
        t = time.time()
        b = self.q.get()
        self.wait += time.time() - t
        self.again += [b] * (self.uses - 1)
        return b


def share(tensors, extra, procs):
    """the gradients of tensors and the numbers in extra, averaged over the trainers -> extra"""
    if procs == 1:
        return extra
    v = torch.cat([t.grad.flatten() for t in tensors] + [torch.tensor(extra)])
    dist.all_reduce(v)
    v /= procs
    at = 0
    for t in tensors:
        t.grad.copy_(v[at:at + t.numel()].view_as(t)); at += t.numel()
    return v[at:].tolist()


def average_into(ema, net, d):
    with torch.no_grad():
        for v, w in zip(ema.state_dict().values(), net.state_dict().values()):
            v.mul_(d).add_(w, alpha=1 - d) if v.dtype.is_floating_point else v.copy_(w)


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'out', 'speech'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--init', help='exported weights to begin with, of networks of the same size')
    ap.add_argument('--start', help='checkpoint of an earlier run to begin with, whose networks may be narrower; its class centres are taken if there are as many')
    ap.add_argument('--procs', type=int, default=1, help='trainers side by side'); ap.add_argument('--uses', type=int, default=1, help='of each conversation')
    ap.add_argument('--centre-lr', type=float, default=.5, help='of the class centres: one mask moves its centre by about .14')
    ap.add_argument('--extra', help='store of synthetic voices, of synthesise_voices.py')
    ap.add_argument('--minutes', type=float, default=80); ap.add_argument('--lr', type=float, default=4e-4, help='of the embedder; the rest learns twice as fast'); ap.add_argument('--wd', type=float, default=.03)
    ap.add_argument('--margin', type=float, default=.15); ap.add_argument('--convs', type=int, default=16); ap.add_argument('--masks', type=int, default=14)
    ap.add_argument('--strangers', type=float, default=0., help='share of conversations whose people have voices that nobody has: another speed and another vocal tract each time; they are in the contrastive loss alone')
    ap.add_argument('--aam', type=float, default=1.); ap.add_argument('--con', type=float, default=1.); ap.add_argument('--dropout', type=float, default=0., help='of the pooled statistics')
    ap.add_argument('--fresh', type=float, default=0., help='share of turns that are read elsewhere in what there is of a speaker: pairs of one person are then of other words')
    ap.add_argument('--wander', type=float, default=0., help='share of conversations in which people move between turns'); ap.add_argument('--interrupted', type=float, default=0., help='share of conversations with much that is said at once')
    ap.add_argument('--segmenter', help='checkpoint of train_windows.py whose segmenter is taken with --init')
    ap.add_argument('--seg', type=float, default=3.); ap.add_argument('--pair', type=float, default=.3)
    ap.add_argument('--real-share', type=float, default=.03, help='of conversations of 20 s that are pieces of AMI trn, for the segmenter alone')
    ap.add_argument('--every', type=float, default=10); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for rank in range(1, a.procs):
        mp.Process(target=train, args=(a, rank)).start()
    train(a, 0)


def train(a, rank):
    if a.procs > 1:
        os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
        dist.init_process_group('gloo', init_method='tcp://127.0.0.1:29511', rank=rank, world_size=a.procs)
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    np.random.seed(a.seed + rank)
    path = os.path.join(a.out, 'joint.pt')
    old = torch.load(path) if os.path.exists(path) else None
    first = torch.load(a.start) if a.start else None
    emb, seg = Embedder(), Segmenter()
    prior = first['prior'] if first else restore(a.init, emb, seg)
    q = mp.Queue(8)
    p = mp.Process(target=worker, args=(q, a, a.seed * 1000 + 500 * rank + int(time.time()) % 497 * (old is not None), prior), daemon=True)
    p.start()
    batches = Replay(q, a.uses)
    voices = Voices(a.store, 'train', extra=a.extra)
    heads, aux, sb = Heads(128, len(SPEEDS) * len(voices.speakers)), nn.Conv1d(96, 32, 1), nn.Parameter(torch.tensor([6., -2.]))
    ema_e, ema_s = Embedder(), Segmenter()
    dev = dev_set(Simulator(Voices(a.store, 'dev'), T.load_templates(a.templates), a.noise, 5), 60)
    recs = recordings(os.path.join(a.speech, 'real-dev'))
    watched = {k: recordings(os.path.join(a.speech, f), o) for k, (f, o) in SETS.items() if k != 'ami_trn'}

    def watch(e, s):
        if rank:
            return
        e.eval(); s.eval()
        print('  dev EER ' + ' '.join('%.1f s %.2f' % x for x in dev_eer(e, dev, prior).items())
              + ' | real pieces 1.5 s %.1f, 3 s %.1f' % (pieces(e, recs, prior)[0], pieces(e, recs, prior, 3.)[0]), flush=True)
        for k, rs in watched.items():
            print('   %-8s %s' % (k, measure(network_post(e, s, prior, {}), rs, every(6. if k.startswith('sim') else 2.)).row()), flush=True)

    def pooled(e, h, M, ok):
        return F.normalize(e.bno(e.fc(F.dropout(e.bnp(pool_many(e, h, M)[ok]), a.dropout, e.training))))
    if old:
        for m, k in ((emb, 'emb'), (seg, 'seg'), (ema_e, 'ema_e'), (ema_s, 'ema_s'), (heads, 'heads'), (aux, 'aux')):
            m.load_state_dict(old[k])
        sb.data.copy_(old['sb'])
    else:
        if first:
            for m, k in ((emb, 'ema_e'), (seg, 'ema_s'), (aux, 'aux')):
                grow(m, first[k])
            sb.data.copy_(first['sb'])
        elif a.segmenter:
            ck = torch.load(a.segmenter)
            seg.load_state_dict(ck['ema']); aux.load_state_dict(ck['aux']); sb.data.copy_(ck['sb'])
        emb.eval(); seg.eval()
        t = time.time()
        if first and first['heads']['w'].shape == heads.w.shape:
            heads.load_state_dict(first['heads'])
        else:
            heads.w.data.copy_(class_centres(emb, voices, each=1, speeds=SPEEDS))
        cal = [q.get() for _ in range(6)]

        def run():
            for X, M, Y, _, _, _ in cal:
                X = torch.from_numpy(X.astype(np.float32))
                h = emb.trunk(X)
                pooled(emb, h, torch.from_numpy(M), torch.from_numpy(Y) >= 0)
                seg.stream(X, h)
        both = nn.ModuleList([emb, seg])
        calibrate_bn(both, run)
        if first:
            wake(emb, first['ema_e'])
            calibrate_bn(both, run)
        if a.procs > 1:
            for v in list(both.state_dict().values()) + [heads.w.data]:
                dist.broadcast(v, 0)
        ema_e.load_state_dict(emb.state_dict()); ema_s.load_state_dict(seg.state_dict())
        if rank == 0:
            print('class centres and batch norm measured in %.0f s' % (time.time() - t), flush=True)
        watch(ema_e, ema_s)
    emb = emb.to(memory_format=torch.channels_last)
    params = [p_ for m in (emb, seg, aux) for p_ in m.parameters()] + [sb, heads.s]
    centres = torch.optim.SGD([heads.w], lr=a.centre_lr)
    slow = {id(p_) for p_ in emb.parameters()}
    opt = torch.optim.AdamW([dict(params=[p_ for p_ in params if (p_.ndim > 1) == big and (id(p_) in slow) == own], weight_decay=a.wd * big, pace=1. if own else 2.)
                             for big in (True, False) for own in (True, False)], lr=a.lr, betas=(.9, .98))
    it, spent = 0, 0.
    if old:
        opt.load_state_dict(old['opt']); it, spent = old['it'], old['spent']
    weight = window_weights(3)
    t0, mark, acc = time.time() - spent, spent + a.every * 60, np.zeros(6)

    def save():
        if rank:
            return
        torch.save(dict(emb=emb.state_dict(), seg=seg.state_dict(), ema_e=ema_e.state_dict(), ema_s=ema_s.state_dict(), heads=heads.state_dict(),
                        aux=aux.state_dict(), sb=sb.data, opt=opt.state_dict(), it=it, spent=time.time() - t0, prior=prior, args=vars(a)), path + '.tmp')
        os.replace(path + '.tmp', path)
        export.pair(path, a.out)
    fr = spent / (a.minutes * 60)
    while fr < 1:
        for g in opt.param_groups:
            g['lr'] = g['pace'] * a.lr * min(1, it / 100. + .02) * (.5 + .5 * math.cos(math.pi * fr)) + 1e-5
        centres.param_groups[0]['lr'] = a.centre_lr * (.6 + .4 * math.cos(math.pi * fr))
        X, M, Y, C, W, at = batches.next()
        X = torch.from_numpy(X.astype(np.float32))
        for _ in range(it % 3):
            b = int(np.random.randint(0, 58)); X[:, :, b:b + int(np.random.randint(1, 7))] = 0
        emb.train(); seg.train()
        y, w = torch.from_numpy(Y), torch.from_numpy(W.astype(np.int64))
        ok = y >= 0
        h = emb.trunk(X)
        e = pooled(emb, h, torch.from_numpy(M), ok)
        g = (torch.arange(a.convs) // 2)[:, None].expand_as(y)[ok]
        aam, con = heads(e, y[ok], torch.from_numpy(C)[ok], g, a.margin)
        x = seg.stream(X, h)
        u = torch.cat([x[:, s:s + WINDOW] for s in (0, at, STEPS - WINDOW)])
        sl = pit(seg.window(u), w.flatten(0, 1), weight.expand(3, a.convs, 250).flatten(0, 1))
        if it % 5 == 0:                                                # the first seconds of a stream
            n = int(np.random.randint(15, WINDOW))
            sl = .7 * sl + .3 * pit(seg.window(x[:, :n]), w[0][:, :2 * n], weight[0, :, :2 * n].expand(a.convs, -1))
        z = F.normalize(aux(x[:, -WINDOW:].transpose(1, 2)).transpose(1, 2), dim=2)
        pl = pair_loss(z, w[2], sb[0], sb[1])
        opt.zero_grad(set_to_none=True); centres.zero_grad(set_to_none=True)
        (a.aam * aam + a.con * con + a.seg * (sl + a.pair * pl)).backward()
        fr, = share(params + [heads.w], [(time.time() - t0) / (a.minutes * 60)], a.procs)
        nn.utils.clip_grad_norm_(params, 6.)
        opt.step(); centres.step()
        with torch.no_grad():
            heads.w.copy_(F.normalize(heads.w))
        it += 1
        d = min(.998, it / (it + 20.))
        average_into(ema_e, emb, d); average_into(ema_s, seg, d)
        acc += (aam.item(), con.item(), sl.item(), pl.item(), len(e), 1)
        if it % 100 == 0 and rank == 0:
            print('%5.0f s step %d aam %.3f con %.3f seg %.4f pair %.3f masks %.0f wait %.0f s lr %.5f' % ((time.time() - t0, it) + tuple(acc[:5] / acc[5]) + (batches.wait, opt.param_groups[0]['lr'])), flush=True)
            acc[:] = 0; batches.wait = 0.
        if time.time() - t0 > mark:
            save(); watch(ema_e, ema_s); mark += a.every * 60
    save(); watch(ema_e, ema_s)
    if rank == 0:
        print('done: %d steps' % it)
    p.terminate()


if __name__ == '__main__':
    main()
