"""Measures of the embedder: equal error rate inside conversations, by seconds of speech.

dev_set(): simulated conversations of speakers marked dev (one room and chain each), pieces of 0.5 .. 3 s of lone speech.
pieces(): stretches of one speaker in recordings with RTTM, cut to at most `longest` seconds; pairs of one stretch are no trial.
As a program: table of a network (or of the prototype, whose features are centred on the whole file) on all sets."""
import argparse
import glob
import os
import numpy as np
import torch
import features as FT
from networks import Embedder, load_prototype, mask40

LENGTHS = (.5, 1., 1.5, 2., 3.)


def eer(target, other):
    t, n = np.sort(target), np.sort(other)
    th = np.unique(np.r_[t, n])
    if len(th) > 4000:
        th = th[np.linspace(0, len(th) - 1, 4000).astype(int)]
    fr, fa = np.searchsorted(t, th) / len(t), 1 - np.searchsorted(n, th) / len(n)
    i = np.argmin(np.abs(fr - fa))
    return 50 * (fr[i] + fa[i])


def cut(lone, seconds, cap=6):
    """masks of exactly `seconds` of the frames in lone (bool [T]), disjoint, spanning at most 5 s"""
    i, n, out = np.flatnonzero(lone), int(seconds * 100), []
    for a in range(0, len(i) - n + 1, n):
        if i[a + n - 1] - i[a] < 500:
            m = np.zeros(len(lone), np.float32)
            m[i[a:a + n]] = 1
            out.append(m)
    return out[:cap]


def in_pieces(y, lab, people):
    """samples and labels of a conversation -> (log-mel, [(seconds, speaker, mask)])"""
    f = FT.logmel(y)
    lab = lab[:len(f)]
    lone = lab & (lab.sum(1, keepdims=True) == 1)
    return f, [(L, s, m) for L in LENGTHS for s in range(people) for m in cut(lone[:, s], L)]


def dev_set(sim, count=90, dur=24., seed=5):
    """[(log-mel, [(seconds, speaker, mask)])]"""
    import turns as T
    r = sim.rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        y, lab, ids, _ = sim.conversation(dur, T.dense(r, dur, 3, .8, 5., overlap=.15), speed_choice=[1.], snr=r.uniform(5, 25))
        out.append(in_pieces(y, lab, len(ids)))
    return out


def corpus_set(sim, corpus, dry, count=40, dur=24., seed=7):
    """like dev_set(), of three speakers of one corpus: as they were recorded, one after the other, or in a room with noise 15 dB below"""
    import turns as T
    r = sim.rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        turns, ids = T.dense(r, dur, 3, .8, 5., overlap=0.), sim.v.pick(r, 3, corpus=corpus, same=1.)
        if dry:
            tracks = sim.tracks(turns, ids, dur, [1.] * 3)
            y = sum(x for x, _ in tracks.values()) * .05 + r.standard_normal(int(dur * FT.SR)) * 1e-5
            lab = np.zeros((int(dur * 100), 3), bool)
            for s, (_, l) in tracks.items():
                lab[:, s] = l
        else:
            y, lab, _, _ = sim.conversation(dur, turns, ids, [1.] * 3, snr=15., hard=False)
        out.append(in_pieces(y, lab, 3))
    return out


@torch.no_grad()
def embed(net, f, masks):
    """f [T, 64] normalised frames, masks [N][T] -> [N, 128]"""
    h = net.trunk(torch.from_numpy(np.ascontiguousarray(f, np.float32))[None])
    m = mask40(torch.from_numpy(np.stack(masks)))
    return net.head(h, m, torch.zeros(len(m), dtype=torch.long)).numpy()


def dev_eer(net, data, prior, whole=False):
    S = {L: ([], []) for L in LENGTHS}
    for f, items in data:
        if not items:
            continue
        g = f - f.mean(0) if whole else FT.normalise(f, prior)
        e = embed(net, g, [m for _, _, m in items])
        for L in LENGTHS:
            k = [i for i, x in enumerate(items) if x[0] == L]
            for a in range(len(k)):
                for b in range(a):
                    S[L][items[k[a]][1] != items[k[b]][1]].append(float(e[k[a]] @ e[k[b]]))
    return {L: eer(np.array(t), np.array(n)) for L, (t, n) in S.items() if t and n}


def read_rttm(path):
    out = {}
    for line in open(path):
        p = line.split()
        if p and p[0] == 'SPEAKER':
            out.setdefault(p[7], []).append((float(p[3]), float(p[3]) + float(p[4])))
    return out


def recordings(folder, only=None):
    """[(name, samples, {speaker: [(start, end)]})] of every audio file with an RTTM beside it"""
    import soundfile as sf
    out = []
    for w in sorted(glob.glob(os.path.join(folder, '*.flac')) + glob.glob(os.path.join(folder, '*.wav'))):
        n = os.path.splitext(os.path.basename(w))[0]
        r = os.path.join(folder, n + '.rttm')
        if os.path.exists(r) and (only is None or n in only):
            x, sr = sf.read(w, dtype='float32', always_2d=True)
            assert sr == FT.SR, w
            out.append((n, x[:, 0], read_rttm(r)))
    return out


def lone_runs(turns, T):
    """[(speaker, first frame, last frame)] where exactly one speaker talks"""
    act = {}
    for s, iv in turns.items():
        v = act[s] = np.zeros(T, bool)
        for a, b in iv:
            v[int(a * 100):int(b * 100)] = True
    n = sum(v.astype(int) for v in act.values())
    out = []
    for s, v in act.items():
        e = np.flatnonzero(np.diff(np.r_[0, (v & (n == 1)).astype(np.int8), 0]))
        out += [(s, b, c) for b, c in zip(e[::2], e[1::2])]
    return out


def pieces(net, recs, prior, longest=1.5, shortest=.8, whole=False, scores=False):
    t, n = [], []
    for _, x, turns in recs:
        f = FT.logmel(x)
        T = len(f)
        seg = []
        for q, (s, b, c) in enumerate(lone_runs(turns, T)):
            for a in range(b, c, int(longest * 100)):
                z = min(c, a + int(longest * 100))
                if z - a >= shortest * 100:
                    seg.append((s, q, a, z))
        if len({s[0] for s in seg}) < 2:
            continue
        masks = np.zeros((len(seg), T), np.float32)
        for i, (_, _, a, z) in enumerate(seg):
            masks[i, a:z] = 1
        g = f - f.mean(0) if whole else FT.normalise(f, prior)
        e = np.concatenate([embed_piece(net, g, masks[i:i + 64]) for i in range(0, len(seg), 64)])
        c = e @ e.T
        for i in range(len(seg)):
            for j in range(i):
                if seg[i][1] != seg[j][1]:
                    (t if seg[i][0] == seg[j][0] else n).append(c[i, j])
    if scores:
        return np.array(t), np.array(n)
    return eer(np.array(t), np.array(n)), len(t), len(n)


_TRUNK = {}


@torch.no_grad()
def embed_piece(net, g, masks):
    """like embed(), with the trunk of the latest recording kept and only the masked part handed to the pooling"""
    key = (id(net), id(g))
    if key not in _TRUNK:
        _TRUNK.clear()
        _TRUNK[key] = net.trunk(torch.from_numpy(g)[None]), g
    h = _TRUNK[key][0]
    out = []
    for m in mask40(torch.from_numpy(masks)):
        i = torch.nonzero(m)[:, 0]
        a, b = int(i[0]), int(i[-1]) + 1
        out.append(net.head(h[:, :, a:b], m[None, a:b])[0].numpy())
    return np.stack(out)


def main():
    from simulate import Simulator
    from voices import Voices
    import turns as T
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'speech'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--ckpt'); ap.add_argument('--prototype')
    ap.add_argument('--learnt', action='store_true', help='voices that were trained on against those that were not, by corpus, in place of the rest')
    a = ap.parse_args()
    torch.set_num_threads(1)
    net, prior, whole = Embedder().eval(), None, bool(a.prototype)
    if a.prototype:
        load_prototype(net, a.prototype)
    else:
        ck = torch.load(a.ckpt)
        net.load_state_dict(ck['ema']); prior = ck['prior']
    if a.learnt:
        for split in ('train', 'dev'):
            sim = Simulator(Voices(a.store, split), T.load_templates(a.templates), a.noise, 5)
            for corpus in ('librispeech', 'cv'):
                for dry in (True, False):
                    e = dev_eer(net, corpus_set(sim, corpus, dry), prior, whole)
                    print('%s %s %s:' % (split, corpus, 'dry' if dry else '15 dB'), '  '.join('%.1f s %.1f %%' % x for x in e.items()), flush=True)
        return
    data = dev_set(Simulator(Voices(a.store, 'dev'), T.load_templates(a.templates), a.noise, 5))
    print('simulated dev, inside a conversation:', '  '.join('%.1f s %.2f %%' % x for x in dev_eer(net, data, prior, whole).items()))
    for s in ('real-dev', 'sim-fluent', 'sim-dev', 'tts'):
        r = recordings(os.path.join(a.speech, s))
        for longest in (1.5, 3.):
            print('%s, pieces up to %.1f s: EER %.2f %% (%d target, %d other)' % ((s, longest) + pieces(net, r, prior, longest, whole=whole)), flush=True)


if __name__ == '__main__':
    main()
