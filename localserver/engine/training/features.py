"""The front end of both networks: log-mel frames minus a running mean, independent of the recording's gain.

16 kHz, 25 ms periodic Hann every 10 ms, 512-point power spectrum, 64 HTK mel triangles 20..7600 Hz with peak 1: p_t
[64].

Level: L_t follows the loud frames of speech. With E_t = ln(mean of p_t over the bands), L_0 = E_0 + START at the
first frame that is not silent, since a stream mostly begins with its background, and again E_t + START where that is
more than START_MARGIN below L and a > START_SHARE (see below): a click at the start is not the background. Then
L += ATTACK (E_t - L) where E_t > L, else L += DECAY w_{t-1} (E_t - L). Frames: x_t = ln(p_t + TINY e^L_t), so everything more than 60 dB below the
level is constant, whatever the gain.

Mean: m_t = s_t + a_t (prior + L_t), where s and a begin at 0 and 1 and n at 100; n = min(n + w_t, 12000), s += (x_t -
s) w_t / n, a *= 1 - w_t / n. The prior is the mean frame of speech relative to its level. Result: f_t = x_t - m_t.

Weight: w_t is 1 for a frame whose mean e_t over the bands of x_t is more than 1 above the noise floor l_t, else
0.005, and 0 where there is no signal. l_0 = e_0; l += 0.2 (e_t - l) where e_t < l, else l += 0.002. So the mean is
one of speech: silence counts for little, and a single speaker does not take it over. A gain g adds 2 ln g to E, L, x,
l and s alike, so f does not change."""
import math
from typing import NamedTuple
import numpy as np
import scipy.fft as sfft

SR, WIN, HOP, NFFT, MELS = 16000, 400, 160, 512, 64
PRIOR_COUNT, MAX_COUNT = 100.0, 12000.0
ABOVE, LOW_WEIGHT = 1.0, 0.005
RISE, FALL = 0.002, 0.2
START, ATTACK, DECAY, TINY = 4.0, 0.1, 0.0005, 1e-6
START_SHARE, START_MARGIN = 0.9, 2.0
NO_SIGNAL = math.log(TINY) + 0.5  # relative to the level


def mel_bank(n_mels=MELS, fmin=20.0, fmax=7600.0):
    """[257, n_mels] float32, HTK mel scale, triangles of peak 1."""
    to_mel = lambda f: 2595.0 * np.log10(1 + f / 700.0)
    edges = 700.0 * (10 ** (np.linspace(to_mel(fmin), to_mel(fmax), n_mels + 2) / 2595.0) - 1)
    f = np.arange(NFFT // 2 + 1) * SR / NFFT
    lo, mid, hi = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return np.maximum(0, np.minimum((f - lo) / (mid - lo), (hi - f) / (hi - mid))).T.astype(np.float32)


MEL = mel_bank()
HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WIN) / WIN)).astype(np.float32)


class State(NamedTuple):
    """State of a stream; the default is its beginning. level is None until the first frame with a signal."""

    level: float = None
    floor: float = None  # likewise
    weight: float = 0.0
    mean: np.ndarray = np.zeros(MELS)
    share: float = 1.0  # of the prior in the mean
    count: float = PRIOR_COUNT


def frame_count(samples):
    return max(0, 1 + (samples - WIN) // HOP)


def power(x):
    """float32[n] -> mel energies float64[frames, 64]; frame t covers samples [160 t, 160 t + 400)."""
    x = np.ascontiguousarray(x, np.float32)
    n = frame_count(len(x))
    if n == 0:
        return np.zeros((0, MELS))
    frames = np.lib.stride_tricks.as_strided(x, (n, WIN), (HOP * 4, 4)) * HANN
    s = sfft.rfft(frames, NFFT, axis=1)
    return ((s.real**2 + s.imag**2) @ MEL).astype(np.float64)


def stream(p, prior, state=State()):
    """Mel energies [T, 64] -> (frames relative to the running mean float32 [T, 64], log-mel frames x float64 [T, 64],
    state after them)."""
    level, floor, w, mean, share, count = state
    with np.errstate(divide='ignore'):
        loud = np.log(p.mean(1)).tolist() if len(p) else []
    x, a, lv, shares = np.empty_like(p), np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    log = np.log
    for t, E in enumerate(loud):
        if E > -math.inf:
            if level is None:
                level = E + START
            if share > START_SHARE and E + START + START_MARGIN < level:
                level = E + START
            level += (ATTACK if E > level else DECAY * w) * (E - level)
        lv[t] = level if level is not None else 0.0
        row = x[t]
        log(p[t] + TINY * math.exp(lv[t]), out=row)
        if level is None:
            a[t], shares[t] = 0.0, share
            continue
        e = row.sum() / MELS
        floor = e if floor is None else floor + FALL * (e - floor) if e < floor else floor + RISE
        w = 0.0 if e < NO_SIGNAL + lv[t] else 1.0 if e > floor + ABOVE else LOW_WEIGHT
        count = min(count + w, MAX_COUNT)
        a[t] = w / count
        share *= 1 - a[t]
        shares[t] = share
    s, means = np.array(mean, np.float64), np.empty_like(p)
    for at in range(0, len(p), 4000):  # in parts, so that the product below does not vanish
        b = slice(at, at + 4000)
        q = np.cumprod(1 - a[b])[:, None]
        means[b] = q * (s + np.cumsum(a[b, None] * x[b] / q, 0))
        s = means[b][-1]
    f = x - means - shares[:, None] * (np.asarray(prior, np.float64) + lv[:, None])
    return f.astype(np.float32), x, State(level, floor, w, s, share, count)


def normalised(x, prior, state=State()):
    """Samples -> frames relative to the running mean, as a stream in that state computes them."""
    return stream(power(x), prior, state)[0]


def long_running(p, count=MAX_COUNT, offset=0.0):
    """State of a stream that has had mel energies like p [T, 64] for long; `offset` is added to its mean."""
    zero = np.zeros(MELS)
    end = stream(p, zero)[2]
    end = stream(p, zero, State(level=end.level, floor=end.floor, share=0.0, count=1.0))[2]
    return State(end.level, end.floor, end.weight, end.mean + offset, 0.0, count)


def powerset_of(active):
    """bool [T, <=3] -> class index [T] among (), 0, 1, 2, 01, 02, 12; the last of three at once is left out."""
    a = np.zeros((len(active), 3), np.int64)
    a[:, : active.shape[1]] = active
    return np.array([0, 1, 2, 4, 3, 5, 6, 4])[a @ np.array([1, 2, 4])]
