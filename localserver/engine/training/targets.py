"""What the networks are trained towards: masks of single-speaker speech, classes of windows, excerpts of real
recordings."""
import glob
import itertools
import os
import numpy as np
import scipy.fft as sfft
import soundfile as sf
import features as FT
import rttm
from acoustics import HOP, frequency_response
from voices import stretch

AMI_TRAIN = ['trn0%d' % i for i in (0, 1, 3, 4, 5, 6, 7, 8, 9)]  # of real-dev; all other recordings are for measuring


def masks_of(rng, lab, k, most):
    """disjoint parts of single-speaker speech for each speaker -> [(speaker, mask [T])]; some with shifted edges or
    with overlapped frames in them"""
    single = lab & (lab.sum(1, keepdims=True) == 1)
    out = []
    for s in range(k):
        src = lab[:, s] if rng.random() < 0.15 else single[:, s]
        i, a, n = np.flatnonzero(src), 0, 0
        while a < len(i) - 35 and n < most:
            u = rng.random()
            L = int(
                100
                * (rng.uniform(0.4, 1.0) if u < 0.28 else rng.uniform(1.0, 2.0) if u < 0.7 else rng.uniform(2.0, 3.5))
            )
            j = i[a : a + L]
            j = j[j < j[0] + 480]
            a += len(j) + int(rng.integers(0, 60))
            if len(j) < 35:
                continue
            m = np.zeros(len(lab), np.float32)
            m[j] = 1
            if rng.random() < 0.25:  # the mask of a real segmenter is late, early or too wide
                d = int(rng.integers(-25, 26))
                m = np.maximum(m, np.roll(m, d)) if rng.random() < 0.5 else np.roll(m, d)
            out.append((s, m))
            n += 1
    return out


def classes(lab):
    """bool [10 ms, k] of one window -> classes of 20 ms frames [250]; -1 where a fourth voice talks"""
    lab = lab[1::2]
    order = np.argsort(-lab.sum(0))
    y = FT.powerset_of(lab[:, order[:3]])
    if lab.shape[1] > 3:
        y[lab[:, order[3:]].any(1)] = -1
    return y


def recordings(folder, only=None):
    """yields (name, samples, {speaker: [(start, end)]}) of every audio file with an RTTM beside it"""
    for w in sorted(glob.glob(os.path.join(folder, '*.flac')) + glob.glob(os.path.join(folder, '*.wav'))):
        n = os.path.splitext(os.path.basename(w))[0]
        r = os.path.join(folder, n + '.rttm')
        if os.path.exists(r) and (only is None or n in only):
            x, sr = sf.read(w, dtype='float32', always_2d=True)
            assert sr == FT.SR, w
            turns = {}
            for start, end, speaker in itertools.chain.from_iterable(rttm.read(r).values()):
                turns.setdefault(speaker, []).append((start, end))
            yield n, x[:, 0], turns


def reference(turns, n20):
    """{speaker: [(s, e)]} -> bool [n20, speakers] at 20 ms"""
    t = (np.arange(n20) + 0.5) * 0.02
    out = np.zeros((n20, max(1, len(turns))), bool)
    for k, iv in enumerate(turns.values()):
        for a, b in iv:
            out[(t >= a) & (t < b), k] = True
    return out


def real_excerpt(rng, recs, sim, seconds):
    """`seconds` of a labelled recording at another speed, level and colour, with a little noise, at times with a
    second place of it below"""
    n = int(seconds * 16000)

    def cut(speed):
        _, x, turns = recs[rng.integers(len(recs))]
        ref = reference(turns, len(x) // 320).repeat(2, 0)
        need = int(seconds * 100 * speed) + 8
        s = int(rng.integers(0, len(ref) - need + 1))
        y = x[s * HOP : (s + need) * HOP]
        y = stretch(y, speed)[:n] if speed != 1.0 else y[:n]
        return (
            y / (np.sqrt((y * y).mean()) + 1e-6),
            ref[s + np.minimum((np.arange(seconds * 100) * speed).astype(int), need - 1)],
        )

    y, lab = cut(rng.uniform(0.88, 1.14) if rng.random() < 0.7 else 1.0)
    if rng.random() < 0.15:
        z, other = cut(rng.uniform(0.88, 1.14))
        y, lab = y + z * 10 ** (rng.uniform(-8, 0) / 20), np.concatenate([lab, other], 1)
    L = sfft.next_fast_len(n + 7200, real=True)
    Y = sfft.rfft(y, L)
    if rng.random() < 0.7:
        Y = Y * sim.curve(frequency_response(rng, 3.0), L)
    if rng.random() < 0.2:
        Y = Y * sfft.rfft(sim.room()()[1], L)
    y = sfft.irfft(Y, L)[:n]
    y = y / (np.sqrt((y * y).mean()) + 1e-6)
    if rng.random() < 0.5:
        y = y + sim.banks.noise(rng, n) * 10 ** (-rng.uniform(15, 40) / 20)
    if rng.random() < 0.3:
        y = sim.negatives(y.astype(np.float32), n, False)
    return (y * 10 ** (rng.uniform(-45, -18) / 20)).astype(np.float32), lab
