"""Lines, codecs, rooms, microphones and processing that a finished recording can have gone through; chains of them
for training.

Every function takes float32 samples at 16 kHz (speech at about RMS 1 is not assumed) and returns as many, aligned
with the input, so that labels stay valid. Parameters are drawn from `rng`. ffmpeg does the codecs."""
import math
import subprocess
import numpy as np
import scipy.fft as sfft
import soundfile as sf
from scipy.signal import butter, lfilter, resample_poly, sosfilt
from acoustics import filtered

SR, F32 = 16000, np.float32
FRAME = 320  # 20 ms


def level(x):
    """RMS of the frames that are within 30 dB of the loudest"""
    p = (x[: len(x) // FRAME * FRAME].reshape(-1, FRAME) ** 2).mean(1)
    return float(np.sqrt(p[p >= p.max() * 1e-3].mean())) + 1e-9


def fit(y, n):
    return y[:n] if len(y) >= n else np.pad(y, (0, n - len(y)))


def aligned(x, y, most=4000):
    """y moved so that it lies where x does: the delay of a codec, at most `most` samples, is removed"""
    n = min(len(x), len(y), 6 * SR)
    L = sfft.next_fast_len(2 * n, real=True)
    c = sfft.irfft(sfft.rfft(y[:n], L) * np.conj(sfft.rfft(x[:n], L)), L)
    d = int(np.argmax(np.abs(c[:most])))
    return fit(y[d:], len(x)).astype(F32)


def codec(x, rate, ending, *options):
    """x through ffmpeg's encoder and decoder at a sampling rate"""
    raw = lambda r: ['-f', 'f32le', '-ar', str(r), '-ac', '1']
    run = lambda a, b: subprocess.run(
        ['ffmpeg', '-v', 'error', '-threads', '1', *a, '-threads', '1', *b], input=data, capture_output=True, check=True
    ).stdout
    g = F32(0.5 / max(1e-6, float(np.abs(x).max())))
    data = (x * g).astype('<f4').tobytes()
    data = run([*raw(SR), '-i', '-'], ['-ar', str(rate), '-ac', '1', *options, '-f', ending, '-'])
    data = run(['-f', ending, '-i', '-'], [*raw(SR), '-'])
    return aligned(x, np.frombuffer(data, '<f4')) / g


def band(x, low, high, order):
    kind, edge = ('bandpass', [low, high]) if high < 7900 else ('highpass', low)
    return sosfilt(butter(order, edge, kind, fs=SR, output='sos'), x).astype(F32)


def narrow(x, rng):
    """at 8 kHz and back"""
    y = resample_poly(x, 1, 2, window=('kaiser', rng.uniform(3, 9)))
    return fit(resample_poly(y, 2, 1, window=('kaiser', rng.uniform(3, 9))), len(x)).astype(F32)


def companded(x, law, bits):
    c = np.abs(x).max() + 1e-9
    v, k = np.clip(np.abs(x) / c, 0, 1), 2 ** (bits - 1) - 1
    if law == 'mu':
        q = np.round(np.log1p(255 * v) / math.log(256) * k) / k
        z = (256**q - 1) / 255
    else:
        A = 87.6
        d = 1 + math.log(A)
        q = np.round(np.where(v < 1 / A, A * v / d, (1 + np.log(np.maximum(A * v, 1))) / d) * k) / k
        z = np.where(q < 1 / d, q * d / A, np.exp(q * d - 1) / A)
    return (np.sign(x) * z * c).astype(F32)


def telephone(x, rng):
    y = band(narrow(x, rng), rng.uniform(150, 380), rng.uniform(3100, 3800), int(rng.integers(1, 4)))
    y = y * F32(10 ** (rng.uniform(0, 6) / 20))
    return narrow(companded(y, rng.choice(['mu', 'a']), 8), rng)


def mobile(x, rng):
    """GSM and other narrowband speech codecs"""
    u = rng.random()
    if u < 0.6:
        return codec(x, 8000, 'gsm', '-c:a', 'libgsm')
    return codec(x, 8000, 'ogg', '-c:a', 'libspeex', '-q:a', '%d' % rng.integers(2, 8))


def opus(x, rng):
    return codec(
        x,
        SR,
        'ogg',
        '-c:a',
        'libopus',
        '-b:a',
        '%dk' % rng.choice([8, 10, 13, 15, 18, 22, 28]),
        '-application',
        rng.choice(['voip', 'audio', 'lowdelay'], p=[0.6, 0.25, 0.15]),
    )


def mp3(x, rng):
    return codec(x, SR, 'mp3', '-c:a', 'libmp3lame', '-b:a', '%dk' % rng.choice([16, 20, 28, 32, 40, 48]))


def headset(x, rng):
    """Bluetooth: mSBC, or CVSD's bandwidth; at times with gaps"""
    y = codec(x, SR, 'sbc', '-c:a', 'sbc', '-msbc', '1') if rng.random() < 0.7 else companded(narrow(x, rng), 'mu', 7)
    return lossy(y, rng, 0.03) if rng.random() < 0.4 else y


def adpcm(x, rng):
    return codec(x, SR, 'g722', '-c:a', 'g722')


def lossy(x, rng, most=0.12):
    """packets of 20 or 40 ms that are lost in bursts: silence, the packet before faded, or noise"""
    n, y = int(rng.choice([320, 640])), x.copy()
    lost, gone = rng.uniform(0.005, most), False
    how = rng.integers(3)
    for at in range(n, len(y) - n, n):
        gone = rng.random() < (0.45 if gone else lost)
        if gone:
            before = y[at - n : at]
            y[at : at + n] = (
                0
                if how == 0
                else before * F32(0.7)
                if how == 1
                else rng.standard_normal(n).astype(F32) * F32(0.3) * before.std()
            )
    return y


def clipped(x, rng):
    c = F32(level(x) * rng.uniform(0.5, 2.2))
    return np.clip(x, -c, c) if rng.random() < 0.7 else (np.tanh(x / c) * c).astype(F32)


def quantised(x, rng):
    """a quiet signal in few bits"""
    step = F32(level(x) * 10 ** (-rng.uniform(22, 44) / 20))
    return np.round(x / step) * step


def noise(rng, n, slope):
    s = sfft.rfft(rng.standard_normal(n, F32))
    s *= (np.maximum(sfft.rfftfreq(n, 1 / SR), 25) ** (-slope / 2)).astype(F32)
    y = sfft.irfft(s, n)
    return (y / y.std()).astype(F32)


def noisy(x, rng):
    return x + noise(rng, len(x), rng.uniform(0, 2)) * F32(level(x) * 10 ** (-rng.uniform(6, 20) / 20))


def hum(x, rng):
    t, f = np.arange(len(x), dtype=np.float64) / SR, rng.choice([50, 60, 100, 120, 400])
    h = sum(
        np.sin(2 * np.pi * f * k * t + rng.uniform(0, 6)) * rng.uniform(0.2, 1) / k
        for k in range(1, int(rng.integers(2, 12)))
    )
    return (x + h / h.std() * level(x) * 10 ** (-rng.uniform(8, 25) / 20) + rng.uniform(-0.1, 0.1) * level(x)).astype(
        F32
    )


def room(x, rng, rooms):
    """everybody across a room: a measured or made response, with more or less of the direct sound, and air"""
    h = rooms[rng.integers(len(rooms))].copy()
    if rng.random() < 0.5:
        h[:40] *= F32(10 ** (rng.uniform(-6, 6) / 20))
    L = sfft.next_fast_len(len(x) + len(h), real=True)
    y = sfft.irfft(sfft.rfft(x, L) * sfft.rfft(h, L), L)[: len(x)].astype(F32)
    y *= F32(level(x) / level(y))
    return y + noise(rng, len(x), rng.uniform(0.5, 2)) * F32(level(y) * 10 ** (-rng.uniform(10, 32) / 20))


def made_room(rng):
    """exponentially decaying noise behind a direct sound; T60 0.2 to 1 s, direct to reverberant -6 to 6 dB"""
    t60, n = rng.uniform(0.2, 1.0), 0
    n = int(t60 * SR)
    h = rng.standard_normal(n).astype(F32) * (10 ** (-3 * np.arange(n) / n)).astype(F32)
    h = lfilter([1 - (q := rng.uniform(0.2, 0.8))], [1, -q], h).astype(F32)
    h[: int(rng.uniform(0.002, 0.008) * SR)] = 0
    h *= F32(10 ** (-rng.uniform(-6, 6) / 20) / np.sqrt((h * h).sum()))
    h[0] = 1
    return h


def microphone(x, rng):
    """a small one: no bass, little treble, a resonance"""
    y = band(x, rng.uniform(80, 320), rng.uniform(4500, 8000), int(rng.integers(1, 4)))
    f = rng.uniform(1200, 4200)
    return (y + rng.uniform(0, 2.5) * band(x, f, min(7800.0, f * rng.uniform(1.2, 2.0)), 1)).astype(F32)


def suppressed(x, rng):
    """noise suppression by spectral gains, then mostly automatic gain"""

    def gains(S):
        p = S.real**2 + S.imag**2
        p = lfilter([1 - (q := rng.uniform(0.3, 0.8))], [1, -q], p, axis=0)
        floor = np.percentile(p, rng.uniform(8, 30), axis=0) * rng.uniform(1.5, 5)
        least = 10 ** (-rng.uniform(8, 28) / 20)
        g = np.maximum(least, 1 - floor / (p + 1e-12)) ** rng.uniform(0.5, 1.2)
        return lfilter([1 - (q := rng.uniform(0, 0.6))], [1, -q], g, axis=0)

    out = filtered(x, 512, gains)
    return levelled(out, rng) if rng.random() < 0.75 else out


def levelled(x, rng):
    """automatic gain: quiet speakers come up over seconds or syllables"""
    p = (np.pad(x, (0, -len(x) % FRAME)).reshape(-1, FRAME) ** 2).mean(1)
    top, q, e = p.max() * 1e-5 + 1e-12, math.exp(-0.02 / rng.uniform(0.15, 3.0)), None
    g = np.empty(len(p))
    for i, v in enumerate(p.tolist()):
        e = v if e is None else max(v, e) * 0.3 + e * 0.7 if v > e else q * e + (1 - q) * max(v, top)
        g[i] = e
    g = np.minimum((g / p.max() + 1e-9) ** (-0.5 * rng.uniform(0.3, 0.95)), 10 ** (rng.uniform(8, 24) / 20))
    return (x * np.repeat(g, FRAME)[: len(x)]).astype(F32)


def gated(x, rng):
    """a gate that closes in pauses"""
    p = (np.pad(x, (0, -len(x) % FRAME)).reshape(-1, FRAME) ** 2).mean(1)
    hold = (
        np.convolve(p > level(x) ** 2 * 10 ** (-rng.uniform(18, 32) / 10), np.ones(int(rng.integers(5, 25))))[: len(p)]
        > 0
    )
    g = np.where(hold, 1, 10 ** (-rng.uniform(15, 80) / 20))
    return (x * np.interp(np.arange(len(x)), np.arange(len(g)) * FRAME + FRAME // 2, g)).astype(F32)


def conference(x, rng):
    """as conference software sends it: noise suppression, gain that makes everybody equally loud, mostly a codec. Not
    one of KINDS: 4.0 was trained without it"""
    filtered = lambda x, f: codec(x, SR, 'wav', '-c:a', 'pcm_f32le', '-af', f)
    u = rng.random()
    if u < 0.6:
        x = filtered(x, 'afftdn=nr=%.1f:nf=%.1f' % (rng.uniform(6, 36), rng.uniform(-60, -25)))
    elif u < 0.85:
        x = suppressed(x, rng)
    u = rng.random()
    if u < 0.55:
        x = filtered(
            x, 'dynaudnorm=f=%d:g=%d:m=%.1f' % (rng.integers(100, 500), 2 * rng.integers(1, 12) + 1, rng.uniform(3, 30))
        )
    elif u < 0.75:
        x = filtered(x, 'speechnorm=e=%.1f:r=%.5f' % (rng.uniform(4, 25), 10 ** rng.uniform(-4.5, -3)))
    else:
        x = levelled(x, rng)
    u = rng.random()
    return opus(x, rng) if u < 0.65 else mp3(x, rng) if u < 0.75 else narrow(x, rng) if u < 0.85 else x


class Channels:
    """Draws chains. rooms: impulse responses, float32, direct sound first."""

    KINDS = [
        (telephone, 0.13),
        (narrow, 0.10),
        (mobile, 0.06),
        (opus, 0.11),
        (mp3, 0.08),
        (headset, 0.05),
        (adpcm, 0.02),
        (lossy, 0.04),
        (clipped, 0.08),
        (quantised, 0.05),
        (noisy, 0.10),
        (hum, 0.05),
        (room, 0.16),
        (microphone, 0.07),
        (suppressed, 0.11),
        (gated, 0.03),
    ]

    def __init__(self, rng, rooms=()):
        self.rng, self.rooms = rng, list(rooms)
        self.p = np.array([p for _, p in self.KINDS]) / sum(p for _, p in self.KINDS)

    def draw(self):
        """one or two stages, the physical ones first"""
        r = self.rng
        k = r.choice(len(self.KINDS), 2 if r.random() < 0.4 else 1, replace=False, p=self.p)
        first = (room, noisy, microphone, hum)
        return sorted((self.KINDS[i][0] for i in k), key=lambda f: first.index(f) if f in first else len(first))

    def apply(self, x, chain):
        for f in chain:
            if f is room:
                made = not self.rooms or self.rng.random() < 0.5
                x = room(x, self.rng, [made_room(self.rng)] if made else self.rooms)
            else:
                x = f(x, self.rng)
        return x

    def apply_to_file(self, path, chain):
        x, rate = sf.read(path, dtype='float32')
        y = self.apply(x, chain)
        sf.write(path, y * min(1, 0.99 / max(1e-9, float(np.abs(y).max()))), rate, subtype='PCM_16')
