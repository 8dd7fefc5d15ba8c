"""The front end of both networks: log-mel frames and the running mean that is taken off them.

16 kHz, 25 ms periodic Hann every 10 ms, 512-point power spectrum, 64 HTK mel triangles 20..7600 Hz with peak 1,
ln(mel + 1e-6). Then f_t = x_t - m_t with m_t = m_{t-1} + (x_t - m_{t-1}) w_t / n_t, n_t = min(n_{t-1} + w_t, 12000), t = 1, 2, ...,
m_0 = a stored prior, n_0 = 100. w_t is 1 for a frame whose level e_t, the mean over its bands, is more than 1 above the floor l_t, else 0.005,
and 0 where there is no signal. l_0 = e_0; l_t = l_{t-1} + 0.2 (e_t - l_{t-1}) where e_t is below l_{t-1}, else l_{t-1} + 0.002. So the mean is
one of speech: silence counts for little, and who talks at the moment does not take it over.
Every frame is computed once in a stream; nothing depends on where a window begins.
"""
import numpy as np
import scipy.fft as sfft

SR, WIN, HOP, NFFT, MELS = 16000, 400, 160, 512, 64
PRIOR_COUNT, MAX_COUNT = 100., 12000.
ABOVE, LOW_WEIGHT, NO_SIGNAL = 1., .005, float(np.log(1e-6)) + .5
RISE, FALL = .002, .2


def mel_bank(n_mels=MELS, fmin=20., fmax=7600.):
    """[257, n_mels] float32, HTK mel scale, triangles of peak 1."""
    to_mel = lambda f: 2595. * np.log10(1 + f / 700.)
    edges = 700. * (10 ** (np.linspace(to_mel(fmin), to_mel(fmax), n_mels + 2) / 2595.) - 1)
    f = np.arange(NFFT // 2 + 1) * SR / NFFT
    lo, mid, hi = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return np.maximum(0, np.minimum((f - lo) / (mid - lo), (hi - f) / (hi - mid))).T.astype(np.float32)


MEL = mel_bank()
HANN = (.5 - .5 * np.cos(2 * np.pi * np.arange(WIN) / WIN)).astype(np.float32)


def frame_count(samples):
    return max(0, 1 + (samples - WIN) // HOP)


def logmel(x):
    """float32[n] -> float32[frames, 64]; frame t covers samples [160 t, 160 t + 400)."""
    x = np.ascontiguousarray(x, np.float32)
    n = frame_count(len(x))
    if n == 0:
        return np.zeros((0, MELS), np.float32)
    frames = np.lib.stride_tricks.as_strided(x, (n, WIN), (HOP * 4, 4)) * HANN
    s = sfft.rfft(frames, NFFT, axis=1)
    return np.log((s.real ** 2 + s.imag ** 2) @ MEL + np.float32(1e-6))


def running_mean(x, prior, count=PRIOR_COUNT):
    """(the mean m_t of every frame of x [T, 64], n_T), from a state `prior` that weighs `count` frames; for minutes, not hours"""
    x, m0 = np.asarray(x, np.float64), np.asarray(prior, np.float64)
    level = x.mean(1).tolist()
    a, n, floor = np.zeros(len(x)), float(count), level[0] if len(x) else 0.
    for t, e in enumerate(level):
        floor += FALL * (e - floor) if e < floor else RISE
        w = 0. if e < NO_SIGNAL else 1. if e > floor + ABOVE else LOW_WEIGHT
        n = min(n + w, MAX_COUNT)
        a[t] = w / n
    p = np.cumprod(1 - a)[:, None]
    return p * (m0 + np.cumsum(a[:, None] * x / p, 0)), n


def normalise(x, prior, count=PRIOR_COUNT):
    """Log-mel frames with the running mean removed."""
    return (x - running_mean(x, prior, count)[0]).astype(np.float32)


def powerset_of(active):
    """bool [T, <=3] -> class index [T] among (), 0, 1, 2, 01, 02, 12; a third voice at once is left out (the last)."""
    a = np.zeros((len(active), 3), np.int64)
    a[:, :active.shape[1]] = active
    return np.array([0, 1, 2, 4, 3, 5, 6, 4])[a @ np.array([1, 2, 4])]


def settled_mean(x):
    """The mean that a stream has after long, if all of it sounds like x [T, 64]."""
    return running_mean(x, x.mean(0), 1.)[0][-1]
