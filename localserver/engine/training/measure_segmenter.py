"""Measures of the segmenter as the engine uses it: 5 s windows that end at "now" (nothing to the right of the newest frame), the
likeliest class of every 20 ms frame, the best permutation per window against an RTTM; errors by place in the last 2 s.
As a program: a table for a checkpoint (or the prototype's segmenter, whose features are its own) on all sets."""
import argparse
import itertools
import os
import sys
import numpy as np
import torch
import features as FT
from measure_embedder import recordings
from networks import CLASSES, WINDOW, Embedder, Segmenter

CONTEXT = 698                                     # 10 ms frames computed for a window of 500: 2 s of true left context
POWER = np.zeros((7, 3), bool)
for _i, _c in enumerate(CLASSES):
    POWER[_i, list(_c)] = True


def reference(turns, n20):
    """{speaker: [(s, e)]} -> bool [n20, speakers] at 20 ms"""
    t = (np.arange(n20) + .5) * .02
    out = np.zeros((n20, max(1, len(turns))), bool)
    for k, iv in enumerate(turns.values()):
        for a, b in iv:
            out[(t >= a) & (t < b), k] = True
    return out


@torch.no_grad()
def windows(emb, seg, f, ends):
    """Posteriors [n, 250, 7] of the windows of normalised frames f that end at the given seconds (>= 5)."""
    out = {}
    size = lambda e: min(CONTEXT, int(round(e * 100)) - 2)
    for n in sorted({size(e) for e in ends}):
        group = [e for e in ends if size(e) == n]
        for i in range(0, len(group), 32):
            g = group[i:i + 32]
            x = torch.from_numpy(np.stack([f[int(round(e * 100)) - 2 - n:int(round(e * 100)) - 2] for e in g]))
            y = seg.stream(x, emb.trunk(x))[:, -WINDOW:]
            for e, p in zip(g, seg.window(y).exp().numpy()):
                out[e] = p
    return np.stack([out[e] for e in ends]) if ends else np.zeros((0, 250, 7))


class Tally:
    def __init__(self):
        self.n = {}

    def inc(self, **k):
        for a, b in k.items():
            self.n[a] = self.n.get(a, 0) + int(b)

    def add(self, ref, hyp):
        """bool [250, any], bool [250, 3]; the three most talkative reference speakers are matched, the others count as missed"""
        r = ref[:, np.argsort(-ref.sum(0))[:3]].astype(int)
        if r.shape[1] < 3:
            r = np.pad(r, ((0, 0), (0, 3 - r.shape[1])))
        h = hyp.astype(int)
        ov = r.T @ h
        best = max(itertools.permutations(range(3)), key=lambda p: sum(ov[i, p[i]] for i in range(3)))
        co = sum(r[:, i] & h[:, best[i]] for i in range(3))
        nr, nh = ref.sum(1), h.sum(1)
        err = np.maximum(nr, nh) - co
        self.inc(ref=nr.sum(), err=err.sum(), miss=np.maximum(nr - nh, 0).sum(), fa=np.maximum(nh - nr, 0).sum(), conf=(np.minimum(nr, nh) - co).sum(),
                 speech=(nr > 0).sum(), quiet=(nr == 0).sum(), sm=((nr > 0) & (nh == 0)).sum(), sf=((nr == 0) & (nh > 0)).sum(),
                 ro=(nr > 1).sum(), ho=(nh > 1).sum(), oo=((nr > 1) & (nh > 1)).sum())
        for k in range(4):
            a = 250 - 25 * (k + 1)
            self.inc(**{'e%d' % k: err[a:a + 25].sum(), 'r%d' % k: nr[a:a + 25].sum()})

    def row(self):
        q = lambda a, b: 100. * self.n.get(a, 0) / max(1, self.n.get(b, 0))
        return ('DER %5.1f = fa %4.1f miss %4.1f conf %4.1f | speech missed %4.1f%% false %4.1f%% | overlap P %2.0f R %2.0f | last .5/1/1.5/2 s: %s' %
                (q('err', 'ref'), q('fa', 'ref'), q('miss', 'ref'), q('conf', 'ref'), q('sm', 'speech'), q('sf', 'quiet'), q('oo', 'ho'), q('oo', 'ro'),
                 ' '.join('%.1f' % q('e%d' % k, 'r%d' % k) for k in range(4))))


def measure(post, refs, ends):
    """post(i, ends) -> posteriors; refs [(name, samples, turns)]"""
    t = Tally()
    for i, (_, x, turns) in enumerate(refs):
        n20 = len(x) // 320
        ref = reference(turns, n20)
        e = [v for v in ends(len(x) / FT.SR)]
        for v, p in zip(e, post(i, x, e)):
            b = int(round(v * 50))
            t.add(ref[b - 250:b], POWER[p.argmax(1)])
    return t


def network_post(emb, seg, prior, cache):
    def f(i, x, ends):
        if i not in cache:
            cache[i] = FT.normalise(FT.logmel(x), prior)
        return windows(emb, seg, cache[i], ends)
    return f


def every(hop):
    return lambda dur: [round(v, 3) for v in np.arange(5., dur + 1e-6, hop)]


def prototype_post(folder):
    sys.path.insert(0, folder)
    import segment as G
    return lambda i, x, ends: [np.asarray(G.segment(x[int(round((v - 5) * FT.SR)):int(round(v * FT.SR))], None)) for v in ends]


def load(path):
    ck = torch.load(path)
    emb, seg = Embedder().eval(), Segmenter().eval()
    emb.load_state_dict(ck['trunk'])
    seg.load_state_dict(ck['ema'])
    return emb, seg, ck['prior']


SETS = dict(ami_trn=('real-dev', ['trn0%d' % i for i in (0, 1, 3, 4, 5, 6, 7, 8, 9)]), ami_dev=('real-dev', ['dev00', 'dev01']), sample=('real-dev', ['sample']),
            four=('real-dev', ['diarizationExample']), falcon=('real-dev', ['falcon']), fluent=('sim-fluent', None), simdev=('sim-dev', None), tts=('tts', None))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--speech', required=True); ap.add_argument('--ckpt'); ap.add_argument('--prototype'); ap.add_argument('--hop', type=float, default=.5)
    a = ap.parse_args()
    torch.set_num_threads(1)
    for name, (folder, only) in SETS.items():
        recs = recordings(os.path.join(a.speech, folder), only)
        if a.prototype:
            post = prototype_post(a.prototype)
        else:
            post = network_post(*load(a.ckpt), {})
        print('%-8s %s' % (name, measure(post, recs, every(a.hop)).row()), flush=True)


if __name__ == '__main__':
    main()
