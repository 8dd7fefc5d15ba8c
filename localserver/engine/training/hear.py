"""What the frozen trunk hears of recorded conversations, kept for train_windows.py.

hear.py --weights W.hubw --folders A,B --out OUT

Each recording is normalised as a stream is: from its beginning, or in a part of them as long after it (--settled), and cut into stretches of 10 s
from somewhere in its first 5 s. The trunk sees a stretch alone, so its last frames are those that a live stream has: with silence for a future.
OUT/frames.f16 [n, 998, 64], OUT/trunk.f16 [n, TRUNK, 250], OUT/who.u8 [n, 1000], a bit for each person in 10 ms."""
import argparse
import glob
import os
import numpy as np
import soundfile as sf
import torch
import features as FT
from networks import Embedder, Segmenter
from restore import restore
from train_joint import FRAMES, SECONDS

LABELS = SECONDS * 100


def people_of(path, n):
    """RTTM -> uint8 [n] of 10 ms, a bit for each person"""
    turns = [l.split() for l in open(path) if l.startswith('SPEAKER')]
    names = sorted({p[7] for p in turns})
    who = np.zeros(n, np.uint8)
    for p in turns:
        a = float(p[3])
        who[int(round(a * 100)):int(round((a + float(p[4])) * 100))] |= 1 << names.index(p[7])
    return who


def stretches_of(rng, path, prior, settled):
    """recording -> (frames [n, FRAMES, 64], who [n, LABELS])"""
    x, _ = sf.read(path, dtype='float32')
    f = FT.logmel(x)
    if rng.random() < settled:
        off = np.interp(np.arange(64), [0, 12, 30, 63], rng.normal(0, .15, 4)) + rng.normal(0, .15)
        f = FT.normalise(f, FT.settled_mean(f) + off, rng.choice([2000., 6000., FT.MAX_COUNT]))
    else:
        f = FT.normalise(f, prior)
    who = people_of(path[:-4] + '.rttm', len(f) + 2 * LABELS)
    at = range(int(rng.integers(0, 500)), len(f) - FRAMES, LABELS)
    return np.stack([f[a:a + FRAMES] for a in at]), np.stack([who[a:a + LABELS] for a in at])


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'folders', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--settled', type=float, default=.4); ap.add_argument('--seed', type=int, default=1); ap.add_argument('--most', type=int, default=10 ** 9, help='recordings of a folder')
    a = ap.parse_args()
    torch.set_num_threads(1)
    emb, rng = Embedder().eval(), np.random.default_rng(a.seed)
    prior = restore(a.weights, emb, Segmenter())
    emb = emb.to(memory_format=torch.channels_last)
    os.makedirs(a.out, exist_ok=True)
    out = [open(os.path.join(a.out, n), 'wb') for n in ('frames.f16', 'trunk.f16', 'who.u8')]
    for folder in a.folders.split(','):
        for path in sorted(glob.glob(os.path.join(folder, '*.wav')))[:a.most]:
            x, who = stretches_of(rng, path, prior, a.settled)
            x = x.astype(np.float16)
            h = emb.trunk(torch.from_numpy(x.astype(np.float32)))
            for f, v in zip(out, (x, h.numpy().astype(np.float16), who)):
                v.tofile(f)


if __name__ == '__main__':
    main()
