"""Simulated conversations: turns + voices + room + microphone + noise -> waveform, who talks (bool [10 ms, speaker]).

One room and one recording chain for a conversation; every speaker has an own distance, level and small colour of its
own."""
import numpy as np
import scipy.fft as sfft
import turns as T
from acoustics import Banks, F32, HOP, mu_law, frequency_response
from voices import join_labels


class Simulator:
    def __init__(self, voices, templates, noise_folder, seed):
        self.voices, self.templates = voices, templates
        self.rng = np.random.default_rng(seed)
        self.banks = Banks(np.random.default_rng(seed + 77), voices, noise_folder)
        self.map = {}

    def curve(self, g, L):
        """gain on 257 bins -> on the bins of a transform of length L"""
        if L not in self.map:
            self.map[L] = np.minimum(256, np.round(np.arange(L // 2 + 1) * (512.0 / L)).astype(np.int32))
        return g[self.map[L]]

    def turns_for(self, dur, most=3):
        r = self.rng
        u = r.random()
        if u < 0.1:
            return []
        if u < 0.62:
            return T.from_template(r, self.templates, dur, most)
        k = int(r.choice([1, 2, 3], p=[0.15, 0.5, 0.35]))
        return T.dense(
            r,
            dur,
            k,
            shortest=r.choice([0.3, 0.6, 1.0]),
            longest=r.choice([2.0, 4.0, 7.0]),
            overlap=r.choice([0.1, 0.3, 0.5]),
        )

    def turned(self, x, wander):
        """one turn as it sounds when a head has moved: another level and colour, `wander` dB of standard deviation"""
        r, L = self.rng, sfft.next_fast_len(len(x), real=True)
        g = np.interp(np.arange(257), [0, 8, 25, 60, 130, 256], r.normal(0, wander, 6)) + r.normal(0, wander)
        return sfft.irfft(sfft.rfft(x, L) * self.curve(10 ** (g / 20).astype(F32), L), L)[: len(x)].astype(F32)

    def tracks(self, turns, ids, dur, speeds, tracts=None, wander=0.0, fresh=0.0):
        """{local speaker: (dry waveform, labels)}; `fresh` of the turns do not go on where the speaker's last one
        ended, but anywhere in what there is of this speaker"""
        r, frames, state, out = self.rng, int(round(dur * 100)), {}, {}
        for a, b, s, cont in sorted(turns):
            n, fa = int(round((b - a) * 100)), int(round(a * 100))
            if n < 12:
                continue
            pre = int(r.integers(0, 150)) if cont and fa == 0 else 0
            if fresh and r.random() < fresh:
                state.pop(ids[s], None)
            x, l = self.voices.read(r, ids[s], n + pre, speeds[s], state, tracts[s] if tracts else None)
            x, l = x[pre * HOP :], l[pre:]
            if wander and len(x):
                x = self.turned(x, wander)
            if s not in out:
                out[s] = (np.zeros(frames * HOP, F32), np.zeros(frames, bool))
            k = min(len(l), frames - fa)
            if k > 0:
                out[s][0][fa * HOP : (fa + k) * HOP] += x[: k * HOP]
                out[s][1][fa : fa + k] |= l[:k]
        return {s: (x, join_labels(l)) for s, (x, l) in out.items()}

    def room(self):
        r = self.rng
        kind = r.choice(['near', 'far', 'real'], p=[0.35, 0.5, 0.15])
        room = self.banks.rooms[r.integers(len(self.banks.rooms))]

        def position():
            if kind == 'real' and self.banks.real_rir:
                return 1.0, self.banks.real_rir[r.integers(len(self.banks.real_rir))]
            return room[r.integers(0, 3) if kind == 'near' else r.integers(1, len(room))]

        return position

    def mix(self, tracks, dur, snr=None, hard=True):
        """dry tracks -> recording"""
        r, n = self.rng, int(round(dur * 100)) * HOP
        L = sfft.next_fast_len(n + 7200, real=True)
        position = self.room()
        spread = r.uniform(0, 7.0)
        acc, act = 0, np.zeros(n // HOP, bool)
        for s, (x, l) in tracks.items():
            d, h = position()
            g = 10 ** (r.uniform(-spread, spread) / 20)
            X = sfft.rfft(x, L) * sfft.rfft(h * F32(g), L)
            if r.random() < 0.5:
                X *= self.curve(
                    10 ** (np.interp(np.arange(257), [0, 12, 40, 110, 256], r.normal(0, 2, 5)) / 20).astype(F32), L
                )
            acc = acc + X
            act |= l
        g = self.curve(frequency_response(r), L)
        y = sfft.irfft(acc * g, L)[:n].astype(F32) if tracks else np.zeros(n, F32)
        p = (y.reshape(-1, HOP) ** 2).mean(1)
        lev = np.sqrt(p[act].mean()) if act.any() else 0.0
        y = y / F32(lev) if lev > 0 else y
        snr = r.uniform(3, 38) + 0.6 * spread if snr is None else snr
        if r.random() < 0.92:
            z = self.banks.noise(r, n)
            if r.random() < 0.25:
                z = z * np.interp(
                    np.arange(n), np.linspace(0, n, max(3, int(dur))), 10 ** (r.uniform(-8, 8, max(3, int(dur))) / 20)
                ).astype(F32)
            y = y + z * F32(10 ** (-snr / 20))
            if r.random() < 0.35:
                y = y + np.resize(self.banks.coloured[r.integers(len(self.banks.coloured))], n) * F32(
                    10 ** (-(snr + r.uniform(0, 12)) / 20)
                )
        if hard:
            y = self.negatives(y, n, len(tracks) == 0)
        u = r.random()
        if u < 0.06:
            y = mu_law(y, int(r.choice([7, 8])))
        elif u < 0.12:
            c = np.abs(y).max() * r.uniform(0.2, 0.6)
            y = np.clip(y, -c, c)
        level = r.uniform(-45, -14) if tracks else r.uniform(-70, -22)
        y = y * F32(10 ** (level / 20)) + r.standard_normal(n, F32) * F32(10 ** (r.uniform(-95, -76) / 20))
        return np.clip(np.round(y * 32768.0), -32768, 32767).astype(F32) / F32(32768.0)

    def negatives(self, y, n, empty):
        """clicks, breath, laughter, and noise that is as loud and as restless as speech; all of it is no speech"""
        r, b = self.rng, self.banks
        if r.random() < (0.75 if empty else 0.5):
            for _ in range(r.integers(1, 8)):
                e = b.events[r.integers(len(b.events))]
                s = int(r.integers(0, n - 100))
                k = min(len(e), n - s)
                y[s : s + k] += e[:k] * F32(10 ** (r.uniform(-18, 10) / 20))
        if r.random() < (0.6 if empty else 0.33):
            m = b.modulated[r.integers(len(b.modulated))]
            s = int(r.integers(len(m) - n + 1)) if len(m) > n else 0
            y = y + np.resize(m[s:], n) * F32(10 ** (r.uniform(-28, 0 if empty else -3) / 20))
        return y

    def conversation(self, dur, turns=None, ids=None, speeds=None, tracts=None, wander=0.0, fresh=0.0, **kw):
        """-> (float32 [dur s], bool [100 dur, 3])"""
        r = self.rng
        turns = self.turns_for(dur) if turns is None else turns
        k = max([s for _, _, s, _ in turns], default=-1) + 1
        ids = self.voices.pick(r, k) if ids is None else ids
        if speeds is None:
            speeds = [r.uniform(0.85, 1.15) if r.random() < 0.6 else 1.0 for _ in range(k)]
        tr = self.tracks(turns, ids, dur, speeds, tracts, wander, fresh)
        y = self.mix(tr, dur, **kw)
        lab = np.zeros((int(round(dur * 100)), max(3, k, len(ids))), bool)
        for s, (_, l) in tr.items():
            lab[:, s] = l
        return y, lab
