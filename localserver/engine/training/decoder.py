"""Trains a decoder: which of the known speakers talk in each frame (../decoder).

decoder.py --data DIR --held-out DIR --out OUT --weights decoder.hubw --parity decoder.hubw [--live]

DIR has what `eval --decoder DIR` writes of meetings of training speakers: what the other stages say of each frame and
the reference; of the second pass (--offline) whole recordings, of the live engine (--live) the newest 5 s as they are
known after every third window. Loss: binary cross entropy of each found speaker's activity; the true speakers are
those of the best one-to-one assignment, as in the error rate. --held-out is another such folder, of people that are
not trained on. OUT/decoder.pt is continued from when the program starts again."""
import argparse
import copy
import glob
import json
import math
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
import export
from networks import DilatedBlock, average_into

SPLIT, SCALES, CHANNELS = 2, 2, 32  # frames of 20 ms in a step of 40 ms; lengths of the compared stretches
INPUTS = 3 * SPLIT + 2 * SCALES + 2 * SPLIT
DILATIONS, EXCHANGES = (1, 2, 4, 8, 16), (1, 3)
# The cosines of people who are not trained on separate less well. In training, noise is added to a speaker's cosines,
# of these standard deviations: the same for the whole part, and around each step (over NOISE_STEPS). By the means and
# deviations of the cosines, this makes up for the difference.
NOISE, NOISE_STEPS = (0.08, 0.07), 25
CLAMP = 0.02


def others(v, mask):
    """v [B, K, T, n], mask [B, K] -> the largest value among the other speakers, 0 where there is none"""
    if v.shape[1] == 1:
        return torch.zeros_like(v)
    m = v.masked_fill(~mask[:, :, None, None], -1e4)
    top = m.topk(2, dim=1).values
    o = torch.where(m >= top[:, :1], top[:, 1:], top[:, :1])
    return o.masked_fill(o < -1e3, 0.0)


class Exchange(nn.Module):
    """adds to each speaker the mean and the largest value of each channel over the others"""

    def __init__(self):
        super().__init__()
        self.w = nn.Conv1d(2 * CHANNELS, CHANNELS, 1)

    def forward(self, x, mask):  # [B, K, C, T], [B, K]
        y = x * mask[:, :, None, None]
        count = mask.sum(1)[:, None, None, None]
        mean = (y.sum(1, keepdim=True) - y) / (count - 1).clamp_min(1)
        return x + self.w(torch.cat([mean, others(x, mask)], 2).flatten(0, 1)).view_as(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.norm = nn.Conv1d(INPUTS, CHANNELS, 1), nn.BatchNorm1d(CHANNELS)
        self.blocks = nn.ModuleList([DilatedBlock(CHANNELS, d) for d in DILATIONS])
        self.exchanges = nn.ModuleList([Exchange() for _ in EXCHANGES])
        self.out, self.scale = nn.Conv1d(CHANNELS, SPLIT, 1), nn.Parameter(torch.tensor(1.0))
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, frames, scores, cosines, mask):
        """frames [B, T, 2 SPLIT], scores [B, K, T, SPLIT], cosines [B, K, T, SCALES], mask [B, K]: which speakers
        exist -> logits as scores"""
        B, K, T, _ = scores.shape
        other = others(scores, mask)
        x = torch.cat(
            [
                scores,
                other,
                frames[:, None].expand(B, K, T, 2 * SPLIT),
                (scores - other).clamp(-1, 1),
                cosines,
                others(cosines, mask),
            ],
            3,
        )
        y = F.relu(self.norm(self.inp(x.transpose(2, 3).flatten(0, 1))))
        e = iter(self.exchanges)
        for i, b in enumerate(self.blocks):
            y = b(y)
            if i in EXCHANGES:
                y = next(e)(y.view(B, K, CHANNELS, T), mask).flatten(0, 1)
        c = scores.clamp(CLAMP, 1 - CLAMP)
        return self.out(y).view(B, K, SPLIT, T).transpose(2, 3) + self.scale * torch.log(c / (1 - c))


def live_weights(frames):
    """how much each frame of a part counts that ends at "now": at a latency of 1 s it is committed 0.8 to 1.3 s
    before that"""
    behind = np.arange(frames)[::-1]
    return np.select([behind < 15, behind < 40, behind < 65], [0.2, 0.7, 3.0], 0.7).astype(np.float32)


class Part:
    """what the decoder sees at once"""

    def __init__(self, v, head, live):
        n, self.numbers = head['Frames'], head['Numbers']
        k = len(self.numbers)
        self.first, self.steps = head['First'], n // SPLIT
        frames, scores, cosines = np.split(v, [2 * n, (2 + k) * n])
        self.frames, self.scores, self.cosines = (
            frames.reshape(n, 2),
            scores.reshape(n, k),
            cosines.reshape(self.steps, k, SCALES),
        )
        self.weight = live_weights(n) if live else np.ones(n, np.float32)
        self.committed = slice(max(0, n - 65), max(0, n - 35)) if live else slice(None)  # of parts 30 frames apart

    def finish(self, truth, annotated, person):
        """person: column of truth of each speaker's number, where it has one"""
        span = slice(self.first, self.first + SPLIT * self.steps)
        self.target = np.zeros(self.scores.shape, bool)
        for j, k in enumerate(self.numbers):
            if k in person:
                self.target[:, j] = truth[span, person[k]]
        self.weight = self.weight * annotated[span]
        by_step = lambda v: v.reshape(self.steps, SPLIT, -1).transpose(2, 0, 1)
        self.frames, self.scores, self.target = (
            self.frames.reshape(self.steps, -1).astype(np.float16),
            by_step(self.scores).astype(np.float16),
            by_step(self.target),
        )
        self.cosines, self.weight = self.cosines.transpose(1, 0, 2).astype(np.float16), self.weight.reshape(
            self.steps, SPLIT
        )


def read_recording(path, live):
    """-> its parts"""
    with open(path, 'rb') as f:
        head = json.loads(f.readline())
        v = np.frombuffer(f.read(), '<f4')
    parts, at = [], 0
    for h in head['Parts'] or []:
        k = len(h['Numbers'])
        size = h['Frames'] * (2 + k) + h['Frames'] // SPLIT * k * SCALES
        parts.append(Part(v[at : at + size], h, live))
        at += size
    frames = max([p.first + SPLIT * p.steps for p in parts], default=0)
    names = sorted({t['Speaker'] for t in head['Reference']})
    truth, annotated = np.zeros((frames, len(names)), bool), np.full(frames, not head['Regions'])
    span = lambda t: slice(int(round(t['Start'] * 50)), int(round(t['End'] * 50)))
    for t in head['Reference']:
        truth[span(t), names.index(t['Speaker'])] = True
    for t in head['Regions'] or []:
        annotated[span(t)] = True
    common = np.zeros((len(names), 1 + max([k for p in parts for k in p.numbers], default=0)), np.int64)
    for p in parts:  # who is taken for the speaker of each frame before decoding
        if p.numbers:
            likely = np.array(p.numbers)[p.scores.argmax(1)]
            at = np.arange(len(likely)) + p.first
            ok = (p.frames[:, 0] > 0.5) & annotated[at]
            for i in range(len(names)):
                t = (ok & truth[at, i])[p.committed]
                common[i] += np.bincount(likely[p.committed][t], minlength=common.shape[1])
    person = {j: i for i, j in zip(*linear_sum_assignment(-common)) if common[i, j]}
    for p in parts:
        p.finish(truth, annotated, person)
    return [p for p in parts if p.numbers and p.steps > 60]


def read(folder, live):
    return [p for f in sorted(glob.glob(os.path.join(folder, '*.bin'))) for p in read_recording(f, live)]


def batch(parts, steps):
    """parts: [(part, first step)] -> inputs of Decoder, target as scores, weight [B, T, SPLIT]"""
    B, K = len(parts), max(len(p.numbers) for p, _ in parts)
    zeros = lambda *shape: np.zeros(shape, np.float32)
    frames, scores, cosines, mask = (
        zeros(B, steps, 2 * SPLIT),
        zeros(B, K, steps, SPLIT),
        zeros(B, K, steps, SCALES),
        np.zeros((B, K), bool),
    )
    target, weight = zeros(B, K, steps, SPLIT), zeros(B, steps, SPLIT)
    for i, (p, t) in enumerate(parts):
        k, n, s = len(p.numbers), min(steps, p.steps - t), slice(t, t + steps)
        frames[i, :n], weight[i, :n], mask[i, :k] = p.frames[s], p.weight[s], True
        scores[i, :k, :n], cosines[i, :k, :n], target[i, :k, :n] = p.scores[:, s], p.cosines[:, s], p.target[:, s]
    return [torch.from_numpy(v) for v in (frames, scores, cosines, mask, target, weight)]


def noisy(cosines):
    """[B, K, T, SCALES] -> with noise"""
    B, K, T, _ = cosines.shape
    around = F.avg_pool1d(torch.randn(B, K, T + NOISE_STEPS - 1), NOISE_STEPS, 1) * NOISE_STEPS**0.5
    return cosines + NOISE[0] * torch.randn(B, K, 1, 1) + NOISE[1] * around[..., None]


def loss(net, b):
    frames, scores, cosines, mask, target, weight = b
    logits = net(frames, scores, cosines, mask)
    w = weight[:, None] * mask[:, :, None, None]
    return (F.binary_cross_entropy_with_logits(logits, target, reduction='none') * w).sum() / weight.sum().clamp_min(1)


@torch.no_grad()
def held_out(net, parts):
    net.eval()
    total = sum(p.weight.sum() for p in parts)
    return sum(loss(net, batch([(p, 0)], p.steps)).item() * p.weight.sum() / total for p in parts)


def tensors_of(net):
    o = [('dec.in', export.folded(net.inp, net.norm))]
    for i, block in enumerate(net.blocks):
        o += [('dec.blk%d.a' % i, export.folded(block.a, block.n)), ('dec.blk%d.b' % i, export.plain(block.b))]
    o += [('dec.exchange%d' % i, export.plain(e.w)) for i, e in enumerate(net.exchanges)]
    return export.stored(o + [('dec.out', export.plain(net.out)), ('dec.scale', net.scale.detach().numpy().reshape(1))])


@torch.no_grad()
def write(net, weights, parity, version, meta):
    """the network, and a part of a meeting of three people that it decodes, for the test of ../decoder"""
    net.eval()
    print('weights: %d bytes' % export.write(weights, tensors_of(net), version, meta))
    g = torch.Generator().manual_seed(1)
    T, K = 80, 3
    scores, cosines, frames = (
        torch.rand(1, K, T, SPLIT, generator=g),
        torch.rand(1, K, T, SCALES, generator=g) - 0.2,
        torch.rand(1, T, 2 * SPLIT, generator=g),
    )
    p = torch.sigmoid(net(frames, scores, cosines, torch.ones(1, K, dtype=torch.bool)))
    flat = lambda v: np.ascontiguousarray(v[0].permute(1, 2, 0).reshape(-1, K).numpy())  # [frames, K]
    export.write(
        parity,
        [
            ('frames', frames[0].reshape(-1, 2).numpy()),
            ('scores', flat(scores)),
            ('cosines', np.ascontiguousarray(cosines[0].transpose(0, 1).numpy())),
            ('probabilities', flat(p)),
        ],
        version,
        {},
    )


def main():
    ap = argparse.ArgumentParser()
    for o in ('data', 'held-out', 'out', 'weights', 'parity'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--version', required=True, help='of the networks whose output step decodes')
    ap.add_argument('--steps', type=int, default=4000)
    ap.add_argument('--lr', type=float, default=2e-3)
    ap.add_argument('--batch', type=int, default=8)
    ap.add_argument('--length', type=int, default=300, help='steps of 40 ms of a whole recording')
    ap.add_argument('--live', action='store_true')
    ap.add_argument('--save', type=int, default=500, help='steps of training')
    ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    if a.live:
        a.length, a.batch = 125, a.batch * 2
    os.makedirs(a.out, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    train, dev = read(a.data, a.live), read(a.held_out, a.live)
    dev = dev[:: max(1, len(dev) // 1000)]
    print('%d parts, %d held out' % (len(train), len(dev)), flush=True)
    net = Decoder()
    ema, opt = copy.deepcopy(net), torch.optim.AdamW(net.parameters(), lr=a.lr, weight_decay=0.02, betas=(0.9, 0.98))
    path, step, t0, losses = os.path.join(a.out, 'decoder.pt'), 0, time.time(), []
    if os.path.exists(path):
        old = torch.load(path)
        net.load_state_dict(old['net'])
        ema.load_state_dict(old['ema'])
        opt.load_state_dict(old['opt'])
        step = old['it']
        rng = np.random.default_rng(a.seed + step)
    share = np.array([p.steps for p in train], float)
    share /= share.sum()
    while step < a.steps:
        net.train()
        for g in opt.param_groups:
            g['lr'] = a.lr * min(1, step / 100 + 0.02) * (0.5 + 0.5 * math.cos(math.pi * step / a.steps)) + 1e-5
        parts = [train[i] for i in rng.choice(len(train), a.batch, p=share)]
        frames, scores, cosines, *rest = batch(
            [(p, int(rng.integers(0, max(1, p.steps - a.length + 1)))) for p in parts], a.length
        )
        l = loss(net, (frames, scores, noisy(cosines), *rest))
        opt.zero_grad(set_to_none=True)
        l.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        losses.append(l.item())
        step += 1
        average_into(ema, net, min(0.995, step / (step + 10.0)))
        if step % a.save == 0 or step == a.steps:
            torch.save(dict(net=net.state_dict(), ema=ema.state_dict(), opt=opt.state_dict(), it=step), path + '.tmp')
            os.replace(path + '.tmp', path)
            print(
                '%5.0f s step %d loss %.4f held out %.4f'
                % (time.time() - t0, step, np.mean(losses), held_out(ema, dev)),
                flush=True,
            )
            losses = []
    write(
        ema,
        a.weights,
        a.parity,
        a.version,
        dict(steps=step, parts=len(train), dilations=DILATIONS, exchanges=EXCHANGES),
    )


if __name__ == '__main__':
    main()
