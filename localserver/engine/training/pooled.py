"""What the trunk makes of single people in recordings, pooled: for train_head.py.

pooled.py --weights W.hubw --folders A,B --out OUT

A recording is normalised as a stream is from its beginning. Where exactly one person talks for 0.6 s or more it is cut into pieces of about a second,
as the engine cuts; each is pooled. OUT/pooled.f16 [n, 2 TRUNK], OUT/pieces.npy [n, 4]: recording, person, start, end (s)."""
import argparse
import glob
import os
import numpy as np
import soundfile as sf
import torch
import features as FT
from networks import TRUNK_RF, Embedder, Segmenter
from restore import restore

SHORTEST, PIECE = 60, 100                                             # frames of 10 ms
AT_ONCE, AROUND = 4000, 4 * (-(-TRUNK_RF // 4) + 1)                   # the trunk sees 40 s at a time, and what lies around


def lone(path, n):
    """RTTM -> [(person, first frame, end frame)] of pieces in which nobody else talks"""
    turns = [l.split() for l in open(path) if l.startswith('SPEAKER')]
    names = sorted({p[7] for p in turns})
    on = np.zeros((len(names), n), bool)
    for p in turns:
        a = float(p[3])
        on[names.index(p[7]), int(round(a * 100)):int(round((a + float(p[4])) * 100))] = True
    alone = on.sum(0) == 1
    out = []
    for k in range(len(names)):
        d = np.diff(np.r_[0, (on[k] & alone).astype(np.int8), 0])
        for a, b in zip(np.flatnonzero(d == 1), np.flatnonzero(d == -1)):
            if b - a >= SHORTEST:
                cut = np.linspace(a, b, max(1, round((b - a) / PIECE)) + 1).round().astype(int)
                out += [(k, cut[i], cut[i + 1]) for i in range(len(cut) - 1)]
    return out


def trunk_of(emb, f):
    """frames [T, 64] -> trunk [1, TRUNK, ceil(T / 4)]"""
    out = []
    for s in range(0, len(f), AT_ONCE):
        a, e = max(0, s - AROUND), min(len(f), s + AT_ONCE)
        h = emb.trunk(torch.from_numpy(f[a:min(len(f), e + AROUND)])[None])
        out.append(h[:, :, (s - a) // 4:(s - a) // 4 + -(-(e - s) // 4)])
    return torch.cat(out, 2)


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'folders', 'out'):
        ap.add_argument('--' + o, required=True)
    a = ap.parse_args()
    torch.set_num_threads(1)
    emb = Embedder().eval()
    prior = restore(a.weights, emb, Segmenter())
    emb = emb.to(memory_format=torch.channels_last)
    os.makedirs(a.out, exist_ok=True)
    pieces, seen = [], 0
    with open(os.path.join(a.out, 'pooled.f16'), 'wb') as out:
        for path in sorted(p for d in a.folders.split(',') for p in glob.glob(os.path.join(d, '*.rttm'))):
            audio = [p for p in (path[:-5] + '.wav', path[:-5] + '.flac') if os.path.exists(p)]
            if not audio:
                continue
            x, _ = sf.read(audio[0], dtype='float32')
            f = FT.normalise(FT.logmel(x), prior).astype(np.float32)
            h = trunk_of(emb, f)
            for k, s, e in lone(path, len(f)):
                i, j = s // 4, min(h.shape[2], -(-e // 4))
                if (j - i) * 4 < SHORTEST // 2:
                    continue
                emb.pool(h[:, :, i:j], torch.ones(1, j - i)).numpy().astype(np.float16).tofile(out)
                pieces.append((seen, k, s / 100., e / 100.))
            seen += 1
    np.save(os.path.join(a.out, 'pieces.npy'), np.array(pieces))
    print('%d recordings, %d pieces' % (seen, len(pieces)))


if __name__ == '__main__':
    main()
