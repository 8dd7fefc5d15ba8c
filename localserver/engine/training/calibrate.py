"""Fits the score that the engine's clustering uses: log-likelihood ratio "same voice / another voice of this conversation" of a local
speaker of a window against a centroid, from their cosine c and the seconds of lone speech behind either side (w: window, k: centroid).

    u = ln(clip(w, .3, 5)), v = ln(clip(k, 1, 20));   llr = (a0 + a1 u + a2 v) c + b0 + b1 u + b2 v + b3 u v

Windows, masks and impurities are the segmenter's own (5 s, ending at "now"), the voices those marked dev, in simulated conversations;
a centroid is the mean of window vectors weighted by their seconds, from windows at least 5 s away. Classes weigh the same."""
import argparse
import json
import os
import numpy as np
import torch
import features as FT
import turns as T
from measure_embedder import eer, recordings
from measure_segmenter import CONTEXT, POWER, load, reference
from networks import WINDOW
from simulate import Simulator
from voices import Voices


@torch.no_grad()
def local_speakers(emb, head, seg, f, ref, hop=1.):
    """[(end s, true speaker, seconds alone, vector)] of every window; the truth is who talks most in the mask"""
    out = []
    for e in np.arange(2., (len(f) + 2) / 100. + 1e-6, hop):
        b = int(round(e * 100)) - 2
        a = max(0, b - CONTEXT - (b - CONTEXT) % 4) if b > CONTEXT else 0
        x = torch.from_numpy(f[a:b])[None]
        h = emb.trunk(x)
        y = seg.stream(x, h)[:, -WINDOW:]
        hard = POWER[seg.window(y)[0].argmax(1).numpy()]
        alone = hard & (hard.sum(1, keepdims=True) == 1)
        n = len(hard)
        i0 = (b + 2) // 2 - n
        r = ref[i0:i0 + n]
        for k in range(3):
            m = alone[:, k]
            if m.sum() < 15 or len(r) < n:
                continue
            ov = r[m].sum(0)
            if ov.max() < .3 * m.sum():
                continue
            w = torch.from_numpy(m.reshape(-1, 2).mean(1).astype(np.float32))[None]
            out.append((e, int(ov.argmax()), m.sum() * .02, head.head(h[:, :, -(n // 2):], w)[0].numpy()))
    return out


def trials(items, rng, each=3):
    """-> rows (cosine, window seconds, centroid seconds, same)"""
    out = []
    for e, s, w, v in items:
        far = [x for x in items if abs(x[0] - e) >= 5.]
        for t in {x[1] for x in far}:
            own = [x for x in far if x[1] == t]
            for _ in range(each):
                want, c, got = np.exp(rng.uniform(0, np.log(20))), 0., 0.
                for j in rng.permutation(len(own)):
                    c, got = c + own[j][2] * own[j][3], got + own[j][2]
                    if got >= want:
                        break
                out.append((float(c @ v / np.linalg.norm(c)), w, got, float(t == s)))
    return np.array(out)


def design(d):
    u, v = np.log(np.clip(d[:, 1], .3, 5)), np.log(np.clip(d[:, 2], 1, 20))
    c = d[:, 0]
    return np.stack([c, c * u, c * v, np.ones(len(d)), u, v, u * v], 1)


def fit(d, ridge=1e-3, rounds=40):
    """weighted logistic regression by Newton's method"""
    X, y = design(d), d[:, 3]
    w = np.where(y > 0, .5 / y.sum(), .5 / (1 - y).sum())
    b = np.zeros(X.shape[1])
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-X @ b))
        g = X.T @ (w * (p - y)) + ridge * b / len(y)
        H = (X * (w * p * (1 - p))[:, None]).T @ X + ridge * np.eye(len(b)) / len(y)
        b = b - np.linalg.solve(H, g)
    return b


def quality(d, b):
    """cost of the llr in bits (1 = knows nothing), EER of the llr, EER of the bare cosine"""
    l, y = design(d) @ b, d[:, 3] > 0
    cost = .5 * np.logaddexp(0, -l[y]).mean() + .5 * np.logaddexp(0, l[~y]).mean()
    return cost / np.log(2), eer(l[y], l[~y]), eer(d[y, 0], d[~y, 0])


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'speech', 'segmenter', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--embedder', help='another head than that of the segmenter checkpoint'); ap.add_argument('--count', type=int, default=70); ap.add_argument('--seed', type=int, default=3)
    a = ap.parse_args()
    torch.set_num_threads(1)
    emb, seg, prior = load(a.segmenter)
    head = emb
    if a.embedder:
        from networks import Embedder
        head = Embedder().eval(); head.load_state_dict(torch.load(a.embedder)['ema'])
    sim = Simulator(Voices(a.store, 'dev'), T.load_templates(a.templates), a.noise, a.seed)
    r, rows = sim.rng, []
    for _ in range(a.count):
        dur = 60.
        k = int(r.choice([2, 3, 4, 5]))
        turns = T.dense(r, dur, k, .5, 6., overlap=.2) if r.random() < .5 else T.largest(T.from_template(r, sim.t, dur, 5), k)
        y, lab, ids, _ = sim.conversation(dur, turns, speed_choice=[1.], snr=r.uniform(5, 30), hard=r.random() < .4)
        rows.append(trials(local_speakers(emb, head, seg, FT.normalise(FT.logmel(y), prior), lab[1::2]), r))
    d = np.concatenate([x for x in rows if len(x)])
    half = np.concatenate([x for x in rows[::2] if len(x)])
    other = np.concatenate([x for x in rows[1::2] if len(x)])
    b = fit(d)
    print('simulated dev: %d same, %d other; cost %.3f bit, EER %.1f, bare cosine %.1f' % ((d[:, 3].sum(), (1 - d[:, 3]).sum()) + quality(d, b)))
    print('   fitted on half, seen on the other half: cost %.3f' % quality(other, fit(half))[0])
    for lo, hi in ((.3, .8), (.8, 1.5), (1.5, 2.5), (2.5, 5.1)):
        q = d[(d[:, 1] >= lo) & (d[:, 1] < hi)]
        s = q[:, 3] > 0
        print('   window %.1f-%.1f s: mean cosine same %.2f other %.2f, EER %.1f' % (lo, hi, q[s, 0].mean(), q[~s, 0].mean(), quality(q, b)[1]))
    check = {}
    for s in ('sim-fluent', 'sim-dev', 'real-dev', 'tts'):
        rec, e = recordings(os.path.join(a.speech, s)), []
        for n, x, t in rec:
            q = trials(local_speakers(emb, head, seg, FT.normalise(FT.logmel(x), prior), reference(t, len(x) // 320)), r)
            if len(q) and not n.startswith('trn'):
                e.append(q)
        e = np.concatenate(e)
        check[s] = quality(e, b)
        print('%-10s %d same, %d other; cost %.3f bit, EER %.1f, bare cosine %.1f' % ((s, e[:, 3].sum(), (1 - e[:, 3]).sum()) + check[s]), flush=True)
    json.dump(dict(formula='u=ln(clip(w,0.3,5)); v=ln(clip(k,1,20)); llr=(a0+a1*u+a2*v)*cos+b0+b1*u+b2*v+b3*u*v', names=['a0', 'a1', 'a2', 'b0', 'b1', 'b2', 'b3'],
                   values=[round(float(x), 4) for x in b], window_seconds='w: seconds of lone speech under the mask', centroid_seconds='k: sum of the seconds of its parts'),
              open(a.out, 'w'), indent=1)


if __name__ == '__main__':
    main()
