"""Trains both networks on simulated conversations passed through channels, from exported weights.

One pass of the trunk over a conversation serves the masks of the embedder and the windows of the segmenter. Every conversation is rendered once and
passed through several channels (channels.py). Losses:

teach  1 - cosine between an embedding and its person's mean teacher embedding. The teacher is the network that training starts from, and hears the
       conversation before the channel. Knowledge distillation, Hinton et al., arXiv 1503.02531.
con    contrastive: one person's masks against other people's of the same corpus, those of the same conversation counting four times.
seg    cross entropy under the best permutation of the speakers (permutation-invariant training, Yu et al., arXiv 1607.00325) of three windows, the last
       of which ends at "now".
pair   frames of one voice are alike, inside the segmenter (an auxiliary output).

The learning rate is a function of the step alone. OUT/train.pt is written every --save minutes and continued from when the program starts again."""
import argparse
import copy
import glob
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
from acoustics import load_audio
from channels import Channels
from losses import contrastive, eer, pair_loss, pit, window_weights
from networks import WINDOW, Embedder, Segmenter, calibrate_bn, has_bfloat16, pool_many
from restore import restore
from simulate import Simulator
from targets import AMI_TRAIN, classes, masks_of, real_excerpt, recordings
from voices import Tract, Voices

SPEEDS = (.87, 1., 1.15)
SECONDS = 10
STEPS = SECONDS * 25
FRAMES = SECONDS * 100 - 2


def halves(rng, y, prior, settled, offset):
    """20 s -> the frames of its first and its second half as a stream computes them: from its beginning, or long after"""
    p = FT.power(y)
    state = FT.settled(p, rng.choice([2000., 6000., FT.MAX_COUNT]), offset) if settled else FT.State()
    first, _, then = FT.stream(p[:SECONDS * 100], prior, state)
    second = FT.stream(p[SECONDS * 100:], prior, state if settled else then)[0]
    return [np.pad(f, ((0, max(0, FRAMES - len(f))), (0, 0)))[:FRAMES] for f in (first, second)]


def room_responses(folder):
    out = []
    for f in sorted(glob.glob(os.path.join(folder, 'rooms', '*.flac'))):
        h = load_audio(f)[:SECONDS * 1600]
        out.append((h / np.sqrt((h * h).sum())).astype(np.float32))
    return out


class Renderer:
    """Draws batches. split: of the speakers; teacher: Embedder in eval mode."""

    def __init__(self, a, split, seed, teacher, prior):
        self.a, self.prior, self.teacher = a, prior, teacher
        self.sim = Simulator(Voices(a.store, split), T.load_templates(a.templates if split == 'train' else a.templates.replace('train', 'dev')), a.noise, seed)
        rooms = room_responses(a.speech)
        self.sim.b.real_rir += rooms
        self.rooms = rooms
        self.channels = Channels(self.sim.rng, rooms)
        self.real = recordings(os.path.join(a.speech, 'real-dev'), AMI_TRAIN) if split == 'train' else []
        self.corpora = {c: i for i, c in enumerate(self.sim.v.corpora)}
        self.people, self.born = 0, time.time()

    def refresh(self):
        """new rooms, noises and events now and then"""
        if time.time() - self.born > 900:
            self.sim.b = type(self.sim.b)(self.sim.rng, self.sim.v, self.a.noise, 40, 25, 40, 300, 100)
            self.sim.b.real_rir += self.rooms
            self.born = time.time()

    def conversation(self, who):
        """-> (samples, labels, numbers of the people or none, corpus of each)"""
        a, r, v = self.a, self.sim.rng, self.sim.v
        if self.real and r.random() < a.real_share:
            y, lab = real_excerpt(r, self.real, self.sim, 2 * SECONDS)
            return y, lab, None
        turns = self.sim.turns_for(2. * SECONDS, 3 if r.random() < .8 else 4) if r.random() < .5 else \
            T.dense(r, 2 * SECONDS, int(r.choice([2, 3, 4], p=[.4, .4, .2])), .6, 3.5, overlap=.2)
        people = max([s for _, _, s, _ in turns], default=-1) + 1
        if who is None or len(who['ids']) < people:
            ids = v.pick(r, max(people, 2), same=.8)
            natural = r.random() >= a.strangers
            who = dict(ids=ids, number=self.people, speeds=[SPEEDS[r.integers(len(SPEEDS))] if natural else r.uniform(.82, 1.22) for _ in ids],
                       tracts=None if natural else [Tract(r) for _ in ids])
            self.people += len(ids)
        kw = dict(snr=r.uniform(4, 32)) if r.random() < .5 else {}
        if r.random() < .3:
            kw['wander'] = r.uniform(.5, 3.)
        y, lab, _, _ = self.sim.conversation(2. * SECONDS, turns, who['ids'], who['speeds'], hard=r.random() < .5, tracts=who['tracts'], fresh=.5, **kw)
        return y, lab, who

    @torch.no_grad()
    def batch(self, variants, channel_share):
        """conversations passed through `variants` channels each -> as many batches"""
        a, r = self.a, self.sim.rng
        n = a.convs
        at = int(r.integers(1, 5)) * 25                               # where the second of the three windows begins, in steps
        M, Y = np.zeros((n, a.masks, STEPS), np.float32), np.full((n, a.masks), -1, np.int64)
        C, W = np.zeros((n, a.masks), np.int64), np.zeros((3, n, 250), np.int8)
        X, clean, who = np.zeros((variants, n, FRAMES, 64), np.float16), np.zeros((n, FRAMES, 64), np.float32), None
        for b in range(0, n, 2):
            y, lab, now = self.conversation(who if b % 4 else None)   # every second conversation has the people of the one before, in another room
            who = now or who
            settled, offset = r.random() < .65, np.interp(np.arange(64), [0, 12, 30, 63], r.normal(0, .15, 4)) + r.normal(0, .15)
            clean[b:b + 2] = halves(r, y, self.prior, True, 0.)
            for k in range(variants):
                z = self.channels.apply(y, self.channels.draw()) if r.random() < channel_share else y
                X[k, b:b + 2] = halves(r, z.astype(np.float32), self.prior, settled, offset)
            for h in range(2):
                part = lab[h * SECONDS * 100:][:SECONDS * 100]
                for i, s in enumerate((0, at * 4, 500)):
                    W[i, b + h] = classes(part[s:s + 500])
                pm = masks_of(r, part[:FRAMES, :len(now['ids'])], len(now['ids']), 5) if now else []
                for j, i in enumerate(r.permutation(len(pm))[:a.masks]):
                    s, m = pm[i]
                    m = np.pad(m, (0, 4 * STEPS - FRAMES)).reshape(STEPS, 4).mean(1)
                    if m.sum() > 3:
                        M[b + h, j], Y[b + h, j] = m, now['number'] + s
                        C[b + h, j] = self.corpora[self.sim.v.speakers[now['ids'][s]][0]]
        ok, e = Y >= 0, np.zeros((n, a.masks, 128), np.float32)
        self.teacher.bf16 = has_bfloat16()
        h = self.teacher.trunk(torch.from_numpy(clean))
        m = torch.from_numpy(M)
        pooled = pool_many(self.teacher, h, m)[torch.from_numpy(ok)]
        if len(pooled):
            e[ok] = F.normalize(self.teacher.bno(self.teacher.fc(self.teacher.bnp(pooled)))).numpy()
        mean = {}
        for k, v, w in zip(Y[ok], e[ok], M[ok].sum(1)):
            mean[k] = mean.get(k, 0) + v * w
        target = np.zeros_like(e)
        for i, j in zip(*np.nonzero(ok)):
            t = mean[Y[i, j]]
            target[i, j] = t / (np.linalg.norm(t) + 1e-9)
        return [(X[k], M, Y, C, W, at, target) for k in range(variants)]


def worker(q, a, seed, prior, teacher):
    torch.set_num_threads(1)
    r = Renderer(a, 'train', seed, teacher, prior)
    while True:
        r.refresh()
        for b in r.batch(a.variants, a.channels):
            q.put(b)


class Replay:
    """Batches of the queue, each given out `uses` times: at once, and again after others."""

    def __init__(self, q, uses, apart=64):
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


def embed(emb, h, M, ok, dropout=0.):
    return F.normalize(emb.bno(emb.fc(F.dropout(emb.bnp(pool_many(emb, h, M)[ok]), dropout, emb.training))))


class Losses:
    def __init__(self, a):
        self.a, self.weight = a, window_weights(3)

    def __call__(self, emb, seg, aux, sb, scale, batch, it):
        a = self.a
        X, M, Y, C, W, at, target = batch
        X = torch.from_numpy(X.astype(np.float32))
        if emb.training:
            for _ in range(it % 3):                                    # bands that are missing
                b = int(np.random.randint(0, 58)); X[:, :, b:b + int(np.random.randint(1, 7))] = 0
            if np.random.random() < .1:
                X[:, :, np.random.randint(40, 60):] = 0
        y, w = torch.from_numpy(Y), torch.from_numpy(W.astype(np.int64))
        ok = y >= 0
        h = emb.trunk(X)
        e = embed(emb, h, torch.from_numpy(M), ok, a.dropout)
        g = (torch.arange(len(Y)) // 2)[:, None].expand_as(y)[ok]
        con = contrastive(e, y[ok], torch.from_numpy(C)[ok], g, scale.clamp(5., 40.))
        teach = (1 - (e * torch.from_numpy(target)[ok]).sum(1)).mean()
        x = seg.stream(X, h)
        n = len(X)
        u = torch.cat([x[:, s:s + WINDOW] for s in (0, at, STEPS - WINDOW)])
        sl = pit(seg.window(u), w.flatten(0, 1), self.weight.expand(3, n, 250).flatten(0, 1))
        if it % 5 == 0:                                                # the first seconds of a stream
            k = int(np.random.randint(15, WINDOW))
            sl = .7 * sl + .3 * pit(seg.window(x[:, :k]), w[0][:, :2 * k], self.weight[0, :, :2 * k].expand(n, -1))
        z = F.normalize(aux(x[:, -WINDOW:].transpose(1, 2)).transpose(1, 2), dim=2)
        return dict(teach=teach, con=con, seg=sl, pair=pair_loss(z, w[2], sb[0], sb[1])), e, y[ok], g

    def total(self, l):
        return self.a.teach * l['teach'] + self.a.con * l['con'] + self.a.seg * (l['seg'] + self.a.pair * l['pair'])


@torch.no_grad()
def held_out(losses, emb, seg, aux, sb, scale, sets):
    """mean losses and EER in % inside conversations, on batches of people that are not trained on"""
    emb.eval(); seg.eval()
    row = []
    for name, batches in sets.items():
        acc, same, other = {}, [], []
        for b in batches:
            l, e, y, g = losses(emb, seg, aux, sb, scale, b, 1)
            for k, v in l.items():
                acc[k] = acc.get(k, 0.) + v.item() / len(batches)
            s, c = (e @ e.t()).numpy(), (g[:, None] == g[None]).numpy()
            p = (y[:, None] == y[None]).numpy()
            up = np.triu(np.ones_like(c), 1)
            same.append(s[p & c & up]); other.append(s[~p & c & up])
        row.append('%s: %s EER %.2f' % (name, ' '.join('%s %.4f' % i for i in acc.items()), eer(np.concatenate(same), np.concatenate(other))))
    return ' | '.join(row)


def average_into(ema, net, d):
    with torch.no_grad():
        for v, w in zip(ema.state_dict().values(), net.state_dict().values()):
            v.mul_(d).add_(w, alpha=1 - d) if v.dtype.is_floating_point else v.copy_(w)


def measured_prior(r, count=120):
    """mean frame of speech relative to its level, over conversations [64]"""
    acc = np.zeros(64)
    for _ in range(count):
        p = FT.power(r.sim.conversation(10.)[0])
        end = FT.settled(p)
        acc += (end.mean - end.level) / count
    return acc


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'out', 'speech', 'init'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--steps', type=int, default=10000); ap.add_argument('--lr', type=float, default=6e-4, help='of the embedder; the rest learns twice as fast'); ap.add_argument('--wd', type=float, default=.03)
    ap.add_argument('--convs', type=int, default=16, help='halves of conversations in a batch'); ap.add_argument('--masks', type=int, default=14, help='of a half')
    ap.add_argument('--variants', type=int, default=2, help='channels that a conversation passes'); ap.add_argument('--uses', type=int, default=2, help='of each variant')
    ap.add_argument('--channels', type=float, default=.65, help='share of conversations that go through a chain of channels')
    ap.add_argument('--strangers', type=float, default=.5, help='share of conversations with synthetic vocal tracts'); ap.add_argument('--real-share', type=float, default=.03, help='excerpts of AMI trn, for the segmenter alone')
    ap.add_argument('--teach', type=float, default=6.); ap.add_argument('--con', type=float, default=1.); ap.add_argument('--seg', type=float, default=3.); ap.add_argument('--pair', type=float, default=.3)
    ap.add_argument('--dropout', type=float, default=.1, help='of the pooled statistics'); ap.add_argument('--save', type=float, default=10, help='minutes'); ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(a.seed); np.random.seed(a.seed)
    path = os.path.join(a.out, 'train.pt')
    old = torch.load(path) if os.path.exists(path) else None
    emb, seg, aux, sb, scale = Embedder(), Segmenter(), nn.Conv1d(96, 32, 1), nn.Parameter(torch.tensor([6., -2.])), nn.Parameter(torch.tensor(14.))
    restore(a.init, emb, seg)
    teacher = copy.deepcopy(emb).eval().to(memory_format=torch.channels_last)
    prior = old['prior'] if old else measured_prior(Renderer(a, 'dev', 8, teacher, None)).astype(np.float32)
    dev = Renderer(a, 'dev', 9, teacher, prior)
    q = mp.Queue(8)
    p = mp.Process(target=worker, args=(q, a, a.seed * 1000 + (old['it'] if old else 0), prior, teacher), daemon=True)
    p.start()
    sets = {'clean': [dev.batch(1, 0.)[0] for _ in range(8)], 'channels': [dev.batch(1, 1.)[0] for _ in range(16)]}
    del dev
    losses, ema_e, ema_s, ema_a = Losses(a), Embedder(), Segmenter(), nn.Conv1d(96, 32, 1)
    batches = Replay(q, a.uses)
    if old:
        for m, k in ((emb, 'emb'), (seg, 'seg'), (aux, 'aux'), (ema_e, 'ema_e'), (ema_s, 'ema_s'), (ema_a, 'ema_a')):
            m.load_state_dict(old[k])
        sb.data.copy_(old['sb']); scale.data.copy_(old['scale'])
    else:
        print('before ' + held_out(losses, emb, seg, aux, sb, scale, sets), flush=True)
        cal = [q.get() for _ in range(8)]

        def run():
            for X, M, Y, *_ in cal:
                X = torch.from_numpy(X.astype(np.float32))
                h = emb.trunk(X)
                embed(emb, h, torch.from_numpy(M), torch.from_numpy(Y) >= 0)
                seg.stream(X, h)
        calibrate_bn(nn.ModuleList([emb, seg]), run)
        for m, e in ((emb, ema_e), (seg, ema_s), (aux, ema_a)):
            e.load_state_dict(m.state_dict())
        print('calibrated ' + held_out(losses, ema_e, ema_s, ema_a, sb, scale, sets), flush=True)
    emb.bf16 = ema_e.bf16 = has_bfloat16()
    emb, ema_e = emb.to(memory_format=torch.channels_last), ema_e.to(memory_format=torch.channels_last)
    params = [v for m in (emb, seg, aux) for v in m.parameters()] + [sb, scale]
    slow = {id(v) for v in emb.parameters()}
    opt = torch.optim.AdamW([dict(params=[v for v in params if (v.ndim > 1) == big and (id(v) in slow) == own], weight_decay=a.wd * big, pace=1. if own else 2.)
                             for big in (True, False) for own in (True, False)], lr=a.lr, betas=(.9, .98))
    it, spent = 0, 0.
    if old:
        opt.load_state_dict(old['opt']); it, spent = old['it'], old['spent']
    t0, saved, acc, since = time.time() - spent, time.time(), {}, it
    common = lambda: dict(it=it, spent=time.time() - t0, prior=prior)

    def save():
        torch.save(dict(emb=emb.state_dict(), seg=seg.state_dict(), aux=aux.state_dict(), ema_e=ema_e.state_dict(), ema_s=ema_s.state_dict(), ema_a=ema_a.state_dict(),
                        sb=sb.data, scale=scale.data, opt=opt.state_dict(), args=vars(a), **common()), path + '.tmp')
        os.replace(path + '.tmp', path)
        torch.save(dict(ema=ema_e.state_dict(), **common()), os.path.join(a.out, 'embedder.pt'))
        torch.save(dict(ema=ema_s.state_dict(), trunk=ema_e.state_dict(), **common()), os.path.join(a.out, 'segmenter.pt'))
        print('step %d ' % it + held_out(losses, ema_e, ema_s, ema_a, sb, scale, sets), flush=True)
    while it < a.steps:
        for g in opt.param_groups:
            g['lr'] = g['pace'] * a.lr * min(1, it / 200. + .02) * (.5 + .5 * math.cos(math.pi * it / a.steps)) + 1e-5
        emb.train(); seg.train()
        l, _, _, _ = losses(emb, seg, aux, sb, scale, batches.next(), it)
        opt.zero_grad(set_to_none=True)
        losses.total(l).backward()
        nn.utils.clip_grad_norm_(params, 6.)
        opt.step()
        it += 1
        d = min(.998, it / (it + 20.))
        average_into(ema_e, emb, d); average_into(ema_s, seg, d); average_into(ema_a, aux, d)
        for k, v in l.items():
            acc[k] = acc.get(k, 0.) + v.item()
        if it % 100 == 0:
            print('%5.0f s step %d %s wait %.0f s lr %.5f' % (time.time() - t0, it, ' '.join('%s %.4f' % (k, v / (it - since)) for k, v in acc.items()), batches.wait, opt.param_groups[0]['lr']), flush=True)
            acc, since, batches.wait = {}, it, 0.
        if time.time() - saved > a.save * 60 and it < a.steps:
            save(); saved = time.time()
    save()
    p.terminate()


if __name__ == '__main__':
    main()
