"""Trains both networks from nothing on simulated conversations and meetings, on a GPU if there is one.

Worker processes render examples (renderer.py), which stay on the device and go through other lines and rooms there
each time they are drawn (augment.py). A teacher, an embedder with more channels, learns at the same time.
Losses:

con    contrastive: one voice's masks against other voices of the same corpus
ver    logistic loss of "one person", for pairs inside an example, at one threshold for all of them
aam    additive angular margin softmax over the training speakers at three speeds; the centres learn by plain gradient
       descent
teach  1 - cosine between an embedding and the mean of the teacher's embeddings of the same person in the batch
       (knowledge distillation, Hinton et al., arXiv 1503.02531)
seg    cross entropy under the best permutation of the speakers (permutation-invariant training, Yu et al., arXiv
       1607.00325) of three windows of each quarter
pair   frames of one voice are alike, inside the segmenter (an auxiliary output)

The learning rate is a function of the share of the steps that are done. OUT/train.pt is written every --save minutes
and continued from when the program starts again; OUT/networks.pt is the result."""
import argparse
import copy
import math
import multiprocessing as mp
import os
import sys
import threading
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import frontend
import renderer as R
from augment import Augment
from features import MELS, power
from losses import Pairs, contrastive, eer, margin_softmax, pair_loss, pit, verification, window_weights
from networks import WINDOW, Embedder, Segmenter, average_into, has_bfloat16, pool_many

THRESHOLD = 0.3  # cosine of ver
MARGIN, SCALE = 0.2, 30.0  # of aam, from half of the training on
TEACH = 6.0  # weight of teach from two fifths of the training on; from a tenth on it rises
AAM, VER, SEG, PAIR = 0.5, 2.0, 3.0, 0.3  # weights
CENTRES = 4.0  # learning rate of the centres
LONG_RUNNING = 0.65  # share of the streams that have gone on for long
HELD_OUT = 48  # examples


def render(queue, r, seed):
    """a worker: r has been made in the parent"""
    torch.set_num_threads(1)
    r.seed(seed)
    while True:
        for e in r.example():
            queue.put(e)


def render_held_out(queue, store, speech):
    torch.set_num_threads(1)
    r = R.Renderer(store, speech, 'dev', 9, strangers=0.0, channels=1.0)
    for _ in range(HELD_OUT):
        clean, through_channels = r.example()
        queue.put((clean, through_channels))


class Store:
    """The examples on the device, the oldest replaced when it is full."""

    def __init__(self, device, capacity):
        q, m = R.QUARTERS, R.MASKS
        on = lambda shape, dtype: torch.empty((capacity, *shape), dtype=dtype, device=device)
        self.frames, self.masks, self.windows = (
            on((2 * R.STRETCH, MELS), torch.float16),
            on((q, m, R.STEPS), torch.float16),
            on((q, R.WINDOWS, 250), torch.int8),
        )
        self.people, self.speakers, self.corpora = (np.full((capacity, q, m), -1, np.int64) for _ in range(3))
        self.at = np.zeros(capacity, np.int64)
        self.device, self.capacity, self.count = device, capacity, 0

    def add(self, e):
        k = self.count % self.capacity
        self.frames[k].copy_(torch.from_numpy(e.frames))
        self.masks[k].copy_(torch.from_numpy(e.masks))
        self.windows[k].copy_(torch.from_numpy(e.windows))
        self.people[k], self.speakers[k], self.corpora[k], self.at[k] = e.people, e.speakers, e.corpora, e.at
        if self.device.type == 'cuda':
            torch.cuda.current_stream().synchronize()
        self.count += 1

    def receive(self, queue):
        """in a thread of its own, with a stream of its own, until the program ends"""
        stream = torch.cuda.Stream() if self.device.type == 'cuda' else None
        with torch.cuda.stream(stream):
            while True:
                self.add(queue.get())

    def batch(self, which):
        """-> mel energies [n, 2 STRETCH, 64], masks [4 n, MASKS, STEPS], of the masks that are there: where, class,
        speaker, corpus, example; windows, where the second begins"""
        to = lambda x: torch.from_numpy(np.ascontiguousarray(x)).to(self.device, non_blocking=True)
        i = to(which)
        there = self.people[which] >= 0
        number = np.broadcast_to(np.arange(len(which))[:, None, None], there.shape)
        flat = lambda x: x.flatten(0, 1)
        return (
            self.frames[i].float().exp(),
            flat(self.masks[i]).float(),
            to(np.flatnonzero(there)),
            *(to(x[which][there]) for x in (self.people, self.speakers, self.corpora)),
            to(number[there]),
            flat(self.windows[i]).long(),
            to(self.at[which].repeat(R.QUARTERS)),
        )


class Networks(nn.Module):
    """What is trained, but for the teacher."""

    def __init__(self, classes):
        super().__init__()
        self.emb, self.seg, self.aux = Embedder(), Segmenter(), nn.Conv1d(96, 32, 1)
        self.head = Head(classes)
        self.pair = nn.Parameter(torch.tensor([6.0, -2.0]))


class Head(nn.Module):
    """What the losses of an embedder learn beside it."""

    def __init__(self, classes, dim=128):
        super().__init__()
        self.centres = nn.Parameter(F.normalize(torch.randn(classes, dim)))
        self.scale, self.steep = nn.Parameter(torch.tensor(14.0)), nn.Parameter(torch.tensor(10.0))

    def forward(self, e, y, pairs, margin):
        con, ver = contrastive(e, pairs, self.scale.clamp(5.0, 40.0)), verification(
            e, pairs, self.steep.clamp(5.0, 30.0), THRESHOLD
        )
        known = torch.where(y < len(self.centres), y, torch.full_like(y, -1))
        return dict(con=con, ver=ver, aam=margin_softmax(e, self.centres, known, SCALE, margin))


def embed(emb, h, masks, where):
    return emb.head(pool_many(emb, h, masks).flatten(0, 1)[where])


class Losses:
    def __init__(self, device, prior, noises):
        self.device, self.prior, self.augment = device, torch.from_numpy(prior).to(device), Augment(noises)
        self.weight = window_weights(R.WINDOWS).to(device)

    def frames(self, p, training):
        """mel energies of examples -> frames of their quarters [4 n, FRAMES, 64]"""
        p = p.view(-1, R.STRETCH, MELS)
        n = len(p)
        at = lambda *shape: torch.rand(*shape, device=self.device)
        if training:
            p = self.augment(p)
        offset = (
            F.interpolate(
                torch.randn(n, 1, 4, device=self.device) * 0.15, size=MELS, mode='linear', align_corners=True
            )[:, 0]
            + torch.randn(n, 1, device=self.device) * 0.15
        )
        counts = torch.tensor([2000.0, 6000.0, 12000.0], device=self.device)[torch.randint(3, (n,), device=self.device)]
        f = frontend.frames(p, self.prior, at(n) < LONG_RUNNING, counts, offset * training)
        f = f.view(2 * n, R.STRETCH // 2, MELS)[:, : R.FRAMES]
        return self.augment.bands_missing(f) if training else f

    def segmentation(self, seg, aux, pair, f, h, windows, at, step):
        x = seg.stream(f, h)
        n = len(x)
        second = x.gather(
            1, (at[:, None] + torch.arange(WINDOW, device=self.device))[..., None].expand(-1, -1, x.shape[2])
        )
        u = torch.cat([x[:, :WINDOW], second, x[:, -WINDOW:]])
        w = windows.transpose(0, 1)
        loss = pit(seg.window(u), w.flatten(0, 1), self.weight.expand(R.WINDOWS, n, 250).flatten(0, 1))
        if step % 5 == 0:  # the first seconds of a stream
            k = int(np.random.randint(15, WINDOW))
            loss = 0.7 * loss + 0.3 * pit(
                seg.window(x[:, :k]), w[0][:, : 2 * k], self.weight[0, :, : 2 * k].expand(n, -1)
            )
        z = F.normalize(aux(x[:, -WINDOW:].transpose(1, 2)).transpose(1, 2), dim=2)
        return dict(seg=loss, pair=pair_loss(z, w[2], pair[0], pair[1]))

    def __call__(self, nets, teacher, head, batch, step, progress):
        """-> losses of the networks, of the teacher, embeddings of both, what is compared"""
        p, masks, where, y, s, c, g, windows, at = batch
        f = self.frames(p, nets.training)
        pairs, margin = Pairs(y, s, c, g), MARGIN * min(1.0, 2 * progress)
        h = nets.emb.trunk(f)
        e = embed(nets.emb, h, masks, where)
        student_losses = nets.head(e, y, pairs, margin)
        student_losses.update(self.segmentation(nets.seg, nets.aux, nets.pair, f, h, windows, at, step))
        t = embed(teacher, teacher.trunk(f), masks, where)
        teacher_losses = head(t, y, pairs, margin)
        mean = F.normalize((pairs.person & pairs.here).float() @ t.detach())
        student_losses['teach'] = 1 - (e * mean).sum(1).mean()
        return student_losses, teacher_losses, e, t, pairs

    @staticmethod
    def total(student_losses, teacher_losses, progress):
        embedder = lambda l: l['con'] + VER * l['ver'] + AAM * l['aam']
        teach = TEACH * min(1.0, max(0.0, (progress - 0.1) / 0.3))
        segmenter = student_losses['seg'] + PAIR * student_losses['pair']
        return embedder(student_losses) + teach * student_losses['teach'] + SEG * segmenter + embedder(teacher_losses)


@torch.no_grad()
def held_out(losses, nets, teacher, head, sets, size):
    """losses and EER in % inside examples, of both embedders, on people that are not trained on"""
    nets.eval()
    teacher.eval()
    row = []
    for name, store in sets.items():
        sums, cosines, n = {}, [[], [], [], []], 0
        for a in range(0, store.count, size):
            student_losses, teacher_losses, e, t, pairs = losses(
                nets, teacher, head, store.batch(np.arange(a, min(store.count, a + size))), 1, 1.0
            )
            n += 1
            for k, v in list(student_losses.items()) + [('teacher ' + k, v) for k, v in teacher_losses.items()]:
                if 'aam' not in k:
                    sums[k] = sums.get(k, 0.0) + v.item()
            up = torch.triu(torch.ones_like(pairs.here), 1) & pairs.here
            for k, v in enumerate((e, t)):
                s = v @ v.t()
                cosines[2 * k].append(s[up & pairs.person].cpu().numpy())
                cosines[2 * k + 1].append(s[up & pairs.other].cpu().numpy())
        if n:
            same, other, teacher_same, teacher_other = map(np.concatenate, cosines)
            row.append(
                '%s: %s EER %.2f, teacher %.2f, cosines %.2f %.2f'
                % (
                    name,
                    ' '.join('%s %.4f' % (k, v / n) for k, v in sums.items()),
                    eer(same, other),
                    eer(teacher_same, teacher_other),
                    same.mean(),
                    other.mean(),
                )
            )
    return ' | '.join(row)


def noise_energies(banks):
    """mel energies of the noises, of mean power 1 [k, T, 64]"""
    P = [power(x)[:1398] for x in banks.real + banks.coloured + banks.babble + banks.modulated]
    return torch.from_numpy(np.stack([p / p.mean() for p in P]).astype(np.float32))


def options():
    ap = argparse.ArgumentParser()
    for o in ('store', 'speech', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--steps', type=int, default=8000)
    ap.add_argument('--batch', type=int, default=32, help='examples in a step')
    ap.add_argument('--capacity', type=int, default=30000, help='examples kept on the device')
    ap.add_argument('--lr', type=float, default=1.5e-3)
    ap.add_argument('--wd', type=float, default=0.04)
    ap.add_argument('--width', type=int, default=3, help='of the teacher')
    ap.add_argument(
        '--channels', type=float, default=0.55, help='share of the examples that also go through channels.py'
    )
    ap.add_argument('--strangers', type=float, default=0.5, help='share of the examples with synthetic vocal tracts')
    ap.add_argument('--workers', type=int, default=max(1, (os.cpu_count() or 2) - 1))
    ap.add_argument('--ahead', type=int, default=400, help='examples to wait for')
    ap.add_argument('--save', type=float, default=10, help='minutes')
    ap.add_argument('--seed', type=int, default=1)
    return ap.parse_args()


def optimizers(nets, teacher, head, a):
    """-> AdamW of everything but the centres of the classes, gradient descent of these"""
    centres = [nets.head.centres, head.centres]
    named = list(nets.named_parameters()) + list(teacher.named_parameters()) + list(head.named_parameters())
    params = [v for _, v in named if not any(v is c for c in centres)]
    groups = [dict(params=[v for v in params if (v.ndim > 1) == big], weight_decay=a.wd * big) for big in (True, False)]
    return torch.optim.AdamW(groups, lr=a.lr, betas=(0.9, 0.98)), torch.optim.SGD(centres, lr=CENTRES)


def set_rates(opt, centres_opt, highest, progress):
    """-> the learning rate of opt"""
    falling = 0.5 + 0.5 * math.cos(math.pi * progress)
    rate = highest * min(1.0, progress / 0.02 + 0.02) * falling + 1e-6
    for g in opt.param_groups:
        g['lr'] = rate
    centres_opt.param_groups[0]['lr'] = CENTRES * falling + 0.05
    return rate


def learn(losses, nets, teacher, head, opts, batch, step, progress):
    """one step -> losses of the networks, of the teacher"""
    nets.train()
    teacher.train()
    student_losses, teacher_losses, *_ = losses(nets, teacher, head, batch, step, progress)
    for opt in opts:
        opt.zero_grad(set_to_none=True)
    losses.total(student_losses, teacher_losses, progress).backward()
    nn.utils.clip_grad_norm_([v for v in nets.parameters() if v is not nets.head.centres], 5.0)
    nn.utils.clip_grad_norm_(teacher.parameters(), 5.0)
    for opt in opts:
        opt.step()
    return student_losses, teacher_losses


def save_as(path, **values):
    """Writes a file that is complete or not there."""
    torch.save(values, path + '.tmp')
    os.replace(path + '.tmp', path)


def check(workers):
    """A worker that has ended has failed: its examples would be missing."""
    if not all(w.is_alive() for w in workers):
        sys.exit('a worker that renders examples has ended; its error is above')


def main():
    a = options()
    born = time.time()
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, 'train.pt')
    old = torch.load(path, map_location='cpu', weights_only=False) if os.path.exists(path) else None
    torch.set_num_threads(1)
    done = old['it'] if old else 0  # steps; after a checkpoint the draws are others
    torch.manual_seed(a.seed + done)
    np.random.seed(a.seed + done)
    r = R.Renderer(a.store, a.speech, 'train', a.seed, a.strangers, a.channels)
    prior = old['prior'].numpy() if old else R.prior(r)
    queue, others = mp.Queue(64), mp.Queue()
    # fork, before the device is used: the workers share what has been loaded
    workers = [
        mp.Process(target=render, args=(queue, r, 1000 * a.seed + 100 * k + done), daemon=True)
        for k in range(a.workers)
    ]
    examiner = mp.Process(target=render_held_out, args=(others, a.store, a.speech), daemon=True)
    for w in [*workers, examiner]:
        w.start()
    noises = noise_energies(r.sim.banks)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    torch.backends.cudnn.benchmark = True
    nets, teacher, head = Networks(r.classes).to(device), Embedder(width=a.width).to(device), Head(r.classes).to(device)
    for e in (nets.emb, teacher):
        e.bf16 = device.type == 'cuda' or has_bfloat16()
        e.to(memory_format=torch.channels_last)
    ema = copy.deepcopy(nets)
    store, sets = Store(device, a.capacity), dict(clean=Store(device, HELD_OUT), channels=Store(device, HELD_OUT))
    if device.type == 'cuda':
        torch.cuda.synchronize()  # the stream of the thread does not wait for that in which the store was made
    threading.Thread(target=store.receive, args=(queue,), daemon=True).start()
    losses = Losses(device, prior, noises.to(device))
    opt, centres_opt = optimizers(nets, teacher, head, a)
    it, spent = 0, 0.0
    if old:
        for m, k in ((nets, 'nets'), (ema, 'ema'), (teacher, 'teacher'), (head, 'head'), (opt, 'opt')):
            m.load_state_dict(old[k])
        it, spent = old['it'], old['spent']
    print('%.0f s until the workers run; %d classes' % (time.time() - born, r.classes), flush=True)
    while store.count < min(a.ahead, a.capacity):
        time.sleep(0.1)
        check(workers)
    started = time.time()
    print('%.0f s until there are %d examples' % (started - born, store.count), flush=True)
    t0, saved, shown, sums = started - spent, started, started, {}
    common = lambda: dict(it=it, spent=time.time() - t0, prior=torch.from_numpy(prior))

    def save(last):
        while not others.empty():
            for name, e in zip(('clean', 'channels'), others.get()):
                sets[name].add(e)
        if last:  # the recipe goes on when this file is there
            save_as(os.path.join(a.out, 'networks.pt'), emb=ema.emb.state_dict(), seg=ema.seg.state_dict(), **common())
        modules = dict(nets=nets, ema=ema, teacher=teacher, head=head, opt=opt)
        save_as(path, **{k: m.state_dict() for k, m in modules.items()}, args=vars(a), **common())
        row = held_out(losses, ema, teacher, head, sets, a.batch)
        print('%.0f s step %d examples %d %s' % (time.time() - t0, it, store.count, row), flush=True)

    while it < a.steps:
        progress = it / a.steps
        rate = set_rates(opt, centres_opt, a.lr, progress)
        which = np.random.choice(min(store.count, store.capacity), min(a.batch, store.count), replace=False)
        student_losses, teacher_losses = learn(
            losses, nets, teacher, head, (opt, centres_opt), store.batch(which), it, progress
        )
        it += 1
        average_into(ema, nets, min(0.998, it / (it + 20.0)))
        for k, v in list(student_losses.items()) + [('teacher ' + k, v) for k, v in teacher_losses.items()]:
            sums[k] = sums.get(k, 0.0) + v.detach()
        if it % 100 == 0:
            print(
                '%5.0f s step %d %s examples %d, %.0f ms, lr %.5f'
                % (
                    time.time() - t0,
                    it,
                    ' '.join('%s %.4f' % (k, v.item() / 100) for k, v in sums.items()),
                    store.count,
                    10 * (time.time() - shown),
                    rate,
                ),
                flush=True,
            )
            shown, sums = time.time(), {}
        if time.time() - saved > a.save * 60 and it < a.steps:
            check(workers)
            save(False)
            saved = time.time()
    save(True)
    for w in [*workers, examiner]:
        w.terminate()


if __name__ == '__main__':
    main()
