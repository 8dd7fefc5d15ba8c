"""The speech that simulated conversations are made of: single speakers from the unpacked store, with the energy
labels of every utterance (10 ms frames), and reading a turn of a wanted length from a speaker."""
import json
import os
import numpy as np
import scipy.fft as sfft
from acoustics import filtered

SR, HOP = 16000, 160
PAUSE = 30  # pauses up to 0.3 s count as speech
BEFORE, AFTER = 1, 3  # frames by which speech is wider than its loud part
CORPUS_SHARE = dict(
    cv=0.40,
    speechocean=0.16,
    librispeech=0.19,
    alphanum=0.09,
    vctk=0.03,
    korean=0.005,
    dspspeech=0.045,
    arabic=0.035,
    gsc=0.045,
)


def corpus_of(name):
    return 'cv' if name.startswith('cv-') else 'speechocean' if name.startswith('speechocean') else name


def close_pauses(a, gap=PAUSE, before=BEFORE, after=AFTER, shortest=4):
    """bool[10 ms] -> runs shorter than `shortest` dropped, the others widened, pauses up to `gap` closed"""
    d = np.diff(np.r_[0, a.astype(np.int8), 0])
    s, e = np.flatnonzero(d == 1), np.flatnonzero(d == -1)
    k = e - s >= shortest
    s, e = s[k], e[k]
    out = np.zeros(len(a), bool)
    if len(s):
        cut = np.flatnonzero(s[1:] - e[:-1] > gap)
        for b, f in zip(s[np.r_[0, cut + 1]], e[np.r_[cut, len(e) - 1]]):
            out[max(0, b - before) : f + after] = True
    return out


def join_labels(a):
    """closes the pauses of labels that have been widened already"""
    return close_pauses(a, PAUSE - BEFORE - AFTER, 0, 0)


def loud(en):
    """energy dB [m] of a clean utterance -> its loud parts bool [m]"""
    near = np.maximum(en, np.r_[en[1:], -100.0])
    top = np.percentile(en, 96)
    return (near > top - 31) & (near > min(np.percentile(en, 4) + 4, top - 18))


def label(x):
    """float[n] clean utterance -> (energy dB [m], speech with pauses closed bool [m])"""
    m = len(x) // HOP
    en = 10 * np.log10((x[: m * HOP].reshape(m, HOP) ** 2).mean(1) + 1e-10)
    return en, close_pauses(loud(en))


def paced(x, raw, least=12, most=25, after=5, before=3):
    """Speech with its pauses of more than `least` frames made silent and cut to `most` frames (and the edges that are
    kept), as somebody reads who is sure of the text. Pauses near the length from which they count are then common,
    and those far from it rare. (samples [HOP m], loud parts bool [m]) -> the same, of another length"""
    d = np.diff(np.r_[1, raw.astype(np.int8), 1])
    ramp = np.linspace(0, 1, HOP, dtype=np.float32)
    X, R, at = [], [], 0
    for a, b in zip(np.flatnonzero(d == -1), np.flatnonzero(d == 1)):
        if a == 0 or b == len(raw) or b - a <= least:
            continue
        n = min(most, b - a)
        y, z = x[at * HOP : (a + after) * HOP].copy(), x[(b - before) * HOP : b * HOP].copy()
        y[-HOP:] *= ramp[::-1]
        z[:HOP] *= ramp
        X += [y, np.zeros(n * HOP, np.float32), z]
        R += [raw[at:a], np.zeros(after + n + before, bool)]
        at = b
    return np.concatenate(X + [x[at * HOP :]]), np.concatenate(R + [raw[at:]])


class Voices:
    """Speakers of one split of a store. Utterances are (first sample, frames, offset into the frame arrays, rms of
    the speech)."""

    def __init__(self, store, split):
        self.speakers, self.by_corpus, self.by_language = [], {}, {}
        self.pcm = np.memmap(os.path.join(store, 'pool.i16'), '<i2', 'r')
        self._read(store, split)
        self.corpora = sorted(self.by_corpus)
        w = np.array([CORPUS_SHARE.get(c, 0.02) * min(1.0, len(self.by_corpus[c]) / 3.0) for c in self.corpora])
        self.weight = w / w.sum()

    def _read(self, folder, split):
        index = [e for e in json.load(open(os.path.join(folder, 'index.json'))) if e['split'] == split]
        cache = os.path.join(folder, 'labels-%s.npz' % split)
        if not os.path.exists(cache):
            self._measure(index, cache)
        with np.load(cache) as z:
            z = dict(z)
        self.energy, self.speech = z['energy'], z['speech']
        for i, e in enumerate(index):
            utts = [
                (int(u[1]), int(u[2]), int(u[3]), float(u[4]))
                for u in z['utts'][z['first'][i] : z['first'][i + 1]]
            ]
            if not utts:
                continue
            c, n = corpus_of(e['corpus']), len(self.speakers)
            self.speakers.append((c, e['corpus'] + '/' + e['speaker'], utts))
            self.by_corpus.setdefault(c, []).append(n)
            self.by_language.setdefault(e['corpus'], []).append(n)

    def _measure(self, index, cache):
        en, sp, utts, first, off = [], [], [], [0], 0
        for i, e in enumerate(index):
            for a, n in e['utts']:
                x = self.pcm[a : a + n].astype(np.float32) / 32768.0
                if n < 3200:
                    continue
                d, s = label(x)
                if s.sum() < 15:
                    continue
                rms = np.sqrt((x[: len(s) * HOP].reshape(-1, HOP)[s] ** 2).mean())
                utts.append((i, a, len(s), off, rms))
                en.append(d.astype(np.float16))
                sp.append(s)
                off += len(s)
            first.append(len(utts))
        np.savez(
            cache + '.tmp.npz',
            energy=np.concatenate(en),
            speech=np.concatenate(sp),
            utts=np.array(utts),
            first=np.array(first),
        )
        os.replace(cache + '.tmp.npz', cache)

    def pick(self, rng, n, same=0.65, language=0.4):
        """n different speakers; mostly of one corpus (and often of one language) so that the channel does not tell
        them apart"""
        c = self.corpora[rng.choice(len(self.corpora), p=self.weight)]
        one = rng.random() < same
        src = self.by_corpus[c]
        if one and c == 'cv' and rng.random() < language:
            k = [v for v in self.by_language.values() if self.speakers[v[0]][0] == 'cv' and len(v) >= n]
            if k:
                src = k[rng.integers(len(k))]
        out = []
        for _ in range(200):
            if len(out) == n:
                break
            if not one and out or len(src) < n:
                src = self.by_corpus[self.corpora[rng.choice(len(self.corpora), p=self.weight)]]
            i = src[rng.integers(len(src))]
            if i not in out:
                out.append(i)
        return out

    def read(self, rng, i, frames, speed=1.0, state=None, tract=None):
        """About `frames` 10 ms frames of fluent speech of speaker i at rms 1: (float32 samples, bool labels), faster
        by `speed` with everything higher, and through another vocal `tract` in place of the speaker's own. state:
        dict that remembers where the speaker is in an utterance, so that turns go on instead of starting over."""
        utts = self.speakers[i][2]
        X, L, left = [], [], frames
        steady = rng.random() < 0.5
        while left > 8:
            want = int(left * speed) + 1
            if state and i in state:
                u, s = state.pop(i)
            else:
                u, s = int(rng.integers(len(utts))), -1
            a, m, off, rms = utts[u]
            en, sp = self.energy[off : off + m], self.speech[off : off + m]
            live = np.flatnonzero(sp)
            if s < 0:
                s = max(0, live[0] - 2)
                if m - s > want + 40 and rng.random() < 0.7:  # somewhere inside: at the next rise of the energy
                    t = int(rng.integers(s, m - want - 10))
                    q = en[t : t + 60].astype(np.float32)
                    s = t + int(np.argmin(q[: max(1, len(q) - 5)]))
            e = min(m, s + want, live[-1] + 4)
            if e - s < 6:
                continue
            if e < live[-1] - 8 and e - s > 30:  # the turn ends in a dip, not inside a vowel
                lo, hi = max(s + 15, e - 15), min(m, e + 15)
                e = lo + int(np.argmin(en[lo:hi]))
                if state is not None:
                    state[i] = (u, e)
            x = self.pcm[a + s * HOP : a + e * HOP].astype(np.float32) * np.float32(
                1 / 32768.0 / max(rms, 1e-4)
            )
            l = sp[s:e]
            if steady:
                x, l = paced(x, loud(en.astype(np.float32))[s:e])
                l = close_pauses(l)
            if speed != 1.0:
                x = stretch(x, speed)
                k = len(x) // HOP
                x = x[: k * HOP]
                l = l[np.minimum((np.arange(k) * speed).astype(int), len(l) - 1)]
            if len(l) < 3:
                continue
            k = min(80, len(x) // 4)
            r = np.linspace(0, 1, k, dtype=np.float32)
            x[:k] *= r
            x[-k:] *= r[::-1]
            X.append(x)
            L.append(l)
            left -= len(l)
            if left > 15:
                g = int(rng.choice([1, 4, 10, 20, 35, 70], p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05]))
                X.append(np.zeros(g * HOP, np.float32))
                L.append(np.zeros(g, bool))
                left -= g
        if not X:
            return np.zeros(0, np.float32), np.zeros(0, bool)
        x = np.concatenate(X)
        return (x if tract is None else tract.speak(x)), join_labels(np.concatenate(L))


def stretch(x, speed):
    """resampling by `speed` (cubic): tempo, pitch and formants move together"""
    p = np.arange(1, len(x) - 3, speed, dtype=np.float64)
    i = p.astype(np.int64)
    f = (p - i).astype(np.float32)
    a, b, c, d = x[i - 1], x[i], x[i + 1], x[i + 2]
    return b + 0.5 * f * (c - a + f * (2 * a - 5 * b + 4 * c - d + f * (3 * (b - c) + d - a)))


class Tract:
    """A vocal tract that nobody has, for the vocal cords of somebody: its resonances are moved by a factor of their
    own in every part of the spectrum, and it has a colour."""

    AT = (300.0, 900.0, 1800.0, 3000.0, 5500.0)  # Hz

    def __init__(self, rng):
        self.stretch = rng.uniform(0.86, 1.17) * rng.uniform(0.93, 1.07, len(self.AT))
        self.colour = rng.normal(0, 2.5, len(self.AT)) * np.log(10) / 20

    def speak(self, x, n=400, lifter=32):
        """float32[m] with its spectral envelope (the cepstrum below 2 ms) stretched along frequency, frame by frame;
        pitch and timing stay."""
        h = n // 2
        hertz = np.linspace(0, SR / 2, h + 1)
        stretch, colour = np.interp(hertz, self.AT, self.stretch), np.interp(hertz, self.AT, self.colour).astype(
            np.float32
        )

        def gains(S):
            c = sfft.irfft(np.log(S.real**2 + S.imag**2 + np.float32(1e-7)), n, axis=1)
            k = np.arange(n)
            c *= np.interp(np.minimum(k, n - k), [lifter - 8, lifter + 8], [1, 0]).astype(np.float32)
            E = sfft.rfft(c, axis=1).real
            at = np.minimum(np.arange(h + 1) / stretch, h - 1e-3)
            i, f = at.astype(int), (at % 1).astype(np.float32)
            return np.exp(np.clip(0.5 * (E[:, i] * (1 - f) + E[:, i + 1] * f - E) + colour, -2.5, 2.5))

        return filtered(x, n, gains)
