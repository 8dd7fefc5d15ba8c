"""Rooms, microphones, background noise and non-speech events of simulated conversations (all made or sliced from
banks, so that a conversation costs a few milliseconds).

meeting.py and channels.py make room responses in ways of their own: no formula is that of all examples. The same holds
for mu-law in channels.py. One in place of another would change the examples of a seed."""
import functools
import glob
import math
import os
import numpy as np
import scipy.fft as sfft
from scipy.signal import lfilter, resample_poly

SR, HOP = 16000, 160
F32 = np.float32


def unit(x):
    return (x / (np.sqrt((x * x).mean()) + 1e-9)).astype(F32)


@functools.cache
def load_audio(path):
    import soundfile as sf

    x, sr = sf.read(path, dtype='float32', always_2d=True)
    x = x[:, 0] if 'rir_' in os.path.basename(path) else x.mean(1)
    if sr != SR:
        g = math.gcd(sr, SR)
        x = resample_poly(x, SR // g, sr // g).astype(F32)
    return x


def impulse(rng, t60, distance, n=7200):
    """room impulse response: direct sound, early reflections, two-band decaying tail; the farther, the more room"""
    n = int(min(n, max(1600, t60 * 1.1 * SR)))
    t = np.arange(n, dtype=F32) / SR
    tail = rng.standard_normal(n).astype(F32) * np.exp(-6.9 * t / t60)
    low = (
        lfilter([0.25], [1, -0.75], rng.standard_normal(n)).astype(F32)
        * 2
        * np.exp(-6.9 * t / (t60 * rng.uniform(1.0, 1.6)))
    )
    tail = np.diff(tail, prepend=F32(0)) * 0.6 + tail * 0.5 + low * rng.uniform(0.2, 1)
    tail[: int(rng.uniform(0.002, 0.009) * SR)] = 0
    for _ in range(rng.integers(2, 8)):
        tail[rng.integers(16, 640)] += rng.normal(0, 4)
    drr = 9 - 20 * np.log10(distance / 0.4) + rng.normal(0, 2)
    h = tail * (10 ** (-drr / 20) / (np.sqrt((tail * tail).sum()) + 1e-9))
    h[0] = 1
    return (h / np.sqrt((h * h).sum())).astype(F32)


def filtered(x, n, gains):
    """float32 samples, their spectra multiplied by gains(spectra): frames of n samples that overlap by half, under the
    root of a Hann window on either side"""
    h = n // 2
    m = -(-len(x) // h) + 1
    y = np.zeros((m + 1) * h, F32)
    y[h : h + len(x)] = x
    w = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)).astype(F32)
    S = sfft.rfft(np.lib.stride_tricks.as_strided(y, (m, n), (h * 4, 4)) * w, axis=1)
    z = sfft.irfft(S * gains(S), n, axis=1).astype(F32) * w
    out = np.zeros((m + 1, h), F32)
    out[:-1] += z[:, :h]
    out[1:] += z[:, h:]
    return out.reshape(-1)[h : h + len(x)]


def non_speech_event(rng):
    """breath, cough, whispered laughter, rustle, knock, click: one event, peak 1"""
    u = rng.random()
    if u < 0.45:
        m = int(SR * rng.choice([0.015, 0.05, 0.15, 0.4]) * rng.uniform(0.5, 1.5))
        b = rng.standard_normal(m) * np.exp(-np.arange(m) / (m / rng.uniform(2, 6)))
        b = (
            lfilter([1], [1, -rng.uniform(0.3, 0.97)], b)
            if rng.random() < 0.5
            else np.r_[b[0], b[1:] - rng.uniform(0, 0.95) * b[:-1]]
        )
        if rng.random() < 0.3:
            b = b * (1 + np.sin(2 * np.pi * rng.uniform(5, 30) / SR * np.arange(m)))
    else:
        m = int(SR * rng.uniform(0.15, 1.6))
        b = rng.standard_normal(m)
        for f in (rng.uniform(300, 1500), rng.uniform(1200, 5000)):
            q = rng.uniform(0.85, 0.97)
            b = b * 0.3 + lfilter([1 - q], [1, -2 * q * np.cos(2 * np.pi * f / SR), q * q], b)
        t = np.linspace(0, 1, m)
        b = b * t ** rng.uniform(0.2, 1.5) * (1 - t) ** rng.uniform(0.3, 2.5)
        if u > 0.75:  # laughter: bursts, some of them with a bit of voice
            f = rng.uniform(3, 7)
            if rng.random() < 0.35:
                p = rng.uniform(120, 400)
                b = (
                    b
                    + rng.uniform(0.2, 1)
                    * np.abs(b).max()
                    * sum(np.sin(2 * np.pi * p * k / SR * np.arange(m)) / k for k in range(1, 6))
                    * t
                    * (1 - t)
                    * 2
                )
            b = b * np.maximum(0.03, np.sin(2 * np.pi * f / SR * np.arange(m) + rng.uniform(0, 6)))
    return (b / (np.abs(b).max() + 1e-9)).astype(F32)


def coloured(rng, n):
    f = sfft.rfftfreq(n, 1 / SR) + 20
    a = f ** (-rng.uniform(0, 1.3)) * 10 ** (
        np.interp(np.log(f), np.log([20, 100, 300, 1000, 3000, 8100]), rng.normal(0, 4, 6)) / 20
    )
    x = sfft.irfft(a * np.exp(2j * np.pi * rng.random(len(f))), n)
    if rng.random() < 0.3:
        x = x * (1 + 0.7 * np.sin(2 * np.pi * rng.uniform(0.2, 4) * np.arange(n) / SR + rng.uniform(0, 6)))
    if rng.random() < 0.2:
        p = rng.choice([50, 60, 100, 120, 150])
        x = x + x.std() * rng.uniform(0.2, 1.5) * np.sin(2 * np.pi * p / SR * np.arange(n))
    return unit(x)


def modulated(rng, voices, n):
    """unvoiced noise with the loudness contour of speech: the negative that an energy detector cannot reject"""
    m, g = n // HOP + 1, []
    while len(g) < m:
        u = voices.speakers[rng.integers(len(voices.speakers))][2]
        _, k, off, _ = u[rng.integers(len(u))]
        en = voices.energy[off : off + k].astype(F32)
        g += list(10 ** ((en[:: rng.choice([1, 1, 2, -1])] - en.max()) * rng.uniform(0.5, 1.2) / 20)) + [1e-3] * int(
            rng.integers(0, 150)
        )
    g = np.interp(np.arange(n) / HOP, np.arange(m), g[:m]).astype(F32)
    b = coloured(rng, n)
    if rng.random() < 0.7:
        q, f = rng.uniform(0.6, 0.97), rng.uniform(200, 5000)
        b = b * rng.uniform(0, 0.5) + lfilter([1 - q], [1, -2 * q * np.cos(2 * np.pi * f / SR), q * q], b).astype(F32)
    return unit(b * g)


def frequency_response(rng, strength=5.0):
    """gain of one recording chain on 257 bins: tilt, bumps, band edges, telephone"""
    f = np.arange(257) * SR / 512.0 + 30
    pts = np.log([30, 120, 300, 700, 1500, 3000, 5000, 8100])
    g = 10 ** (np.interp(np.log(f), pts, rng.normal(0, strength, 8) + rng.uniform(-6, 6) * np.linspace(-1, 1, 8)) / 20)
    u = rng.random()
    if u < 0.2:
        g = g / (1 + (f / rng.uniform(3300, 7200)) ** rng.uniform(6, 20))
    elif u < 0.3:
        g = g / (1 + (f / rng.uniform(3300, 3700)) ** 15) / (1 + (rng.uniform(180, 350) / f) ** 5)
    if rng.random() < 0.35:
        g = g / (1 + (rng.uniform(60, 250) / f) ** rng.uniform(1, 4))
    return g.astype(F32)


def mu_law(x, bits=8):
    c = np.abs(x).max() + 1e-6
    k = 2 ** (bits - 1) - 1
    y = np.round(np.sign(x) * np.log1p(255 * np.abs(x) / c) / np.log(256) * k) / k
    return (np.sign(y) * (256 ** np.abs(y) - 1) / 255 * c).astype(F32)


class Banks:
    """Everything that is made once: noise clips (recorded, coloured, babble), modulated noise, events, rooms."""

    SAMPLES = 14 * SR
    SONG = 'Karissa'  # in the name of a noise file that is left out: its singing would be learnt as noise

    def __init__(self, rng, voices, folder):
        n = self.SAMPLES
        self.real, self.real_rir = [], []
        for f in sorted(glob.glob(os.path.join(folder, '*'))):
            if f.endswith(('.md', '.txt')) or self.SONG in f:
                continue
            x = load_audio(f)
            if 'rir_' in os.path.basename(f):
                p = int(np.abs(x).argmax())
                h = x[max(0, p - 16) : p + 7200]
                self.real_rir.append((h / np.sqrt((h * h).sum())).astype(F32))
                continue
            for i in range(0, min(len(x), SR * 90), n):
                c = x[i : i + n]
                if len(c) > SR // 4 and (c * c).mean() > 1e-9:
                    self.real.append(unit(np.tile(c, n // len(c) + 1)[:n]))
        self.draw(rng, voices)

    def draw(self, rng, voices):
        """makes what is not recorded"""
        n = self.SAMPLES
        self.coloured = [coloured(rng, n) for _ in range(40)]
        self.babble = []
        for _ in range(25):
            y = np.zeros(n, F32)
            for _ in range(rng.integers(3, 8)):
                x, _ = voices.read(rng, int(rng.integers(len(voices.speakers))), n // HOP + 40)
                y += np.resize(x, n) * 10 ** (rng.uniform(-8, 0) / 20)
            h = impulse(rng, rng.uniform(0.3, 0.8), 4.0)
            L = sfft.next_fast_len(n + len(h), True)
            self.babble.append(unit(sfft.irfft(sfft.rfft(y, L) * sfft.rfft(h, L), L)[:n]))
        self.modulated = [modulated(rng, voices, n) for _ in range(40)]
        self.events = [non_speech_event(rng) for _ in range(300)]
        self.rooms = []
        for _ in range(100):
            t60 = np.exp(rng.uniform(np.log(0.12), np.log(0.8)))
            self.rooms.append([(d, impulse(rng, t60, d)) for d in (0.25, 0.4, 0.6, 0.9, 1.4, 2.0, 3.0, 4.5)])

    def noise(self, rng, n):
        b = (self.real or self.coloured, self.coloured, self.babble)[rng.choice(3, p=(0.36, 0.44, 0.2))]
        x = b[rng.integers(len(b))]
        a = int(rng.integers(len(x)))
        return np.take(x, np.arange(a, a + n), mode='wrap') if a + n > len(x) else x[a : a + n]
