"""Who talks when in a simulated conversation: excerpts of annotated meetings (AMI train) or random turn taking.
A turn is (start s, end s, speaker 0.., talked already when the excerpt begins)."""
import collections
import numpy as np
import rttm


def load_templates(path):
    """RTTM of many meetings -> list of float arrays [(start, end, speaker number)]"""
    out = []
    for _, turns in sorted(rttm.read(path).items()):
        names = {n: i for i, n in enumerate(sorted({t[2] for t in turns}))}
        out.append(np.array([(a, b, names[n]) for a, b, n in sorted(turns)]))
    return out


def from_template(rng, templates, dur, most=3):
    """An excerpt of a real meeting, sometimes run faster (denser changes), its `most` most talkative people."""
    want = rng.choice([1, 2, 3, 4], p=[0.14, 0.4, 0.33, 0.13])
    turns = []
    for _ in range(10):
        t = templates[rng.integers(len(templates))]
        scale = rng.uniform(1, 2.2) if rng.random() < 0.4 else 1.0
        t0 = rng.uniform(0, max(1.0, t[-1, 1] - dur * scale))
        k = (t[:, 1] > t0) & (t[:, 0] < t0 + dur * scale)
        turns = [(max(0.0, (a - t0) / scale), min(dur, (b - t0) / scale), int(s), a < t0) for a, b, s in t[k]]
        if len({s for _, _, s, _ in turns}) == want:
            break
    return largest(turns, most)


def largest(turns, most):
    c = collections.Counter()
    for a, b, s, _ in turns:
        c[s] += b - a
    keep = {s: i for i, (s, _) in enumerate(c.most_common(most))}
    return [(a, b, keep[s], f) for a, b, s, f in turns if s in keep]


def dense(rng, dur, k, shortest=0.4, longest=4.0, overlap=0.3, gap=0.3, pause=0.15, keep_on=0.25):
    """k people taking turns: the next one starts overlapping, soon, or after a pause."""
    out, t, last = [], rng.uniform(-2, 1.0), -1
    while t < dur:
        s = int(rng.integers(k))
        if k > 1 and s == last and rng.random() > keep_on:
            s = (s + 1 + int(rng.integers(k - 1))) % k
        d = np.exp(rng.uniform(np.log(shortest), np.log(longest)))
        if t + d > 0.15:
            out.append((max(0.0, t), min(dur, t + d), s, t < 0))
        if k > 1 and rng.random() < 0.12 and d > 1.2:  # a short word of somebody else inside the turn
            o = (s + 1 + int(rng.integers(k - 1))) % k
            b = rng.uniform(0.2, 0.7)
            a = t + rng.uniform(0.2, d - b)
            if 0 < a < dur - 0.2:
                out.append((a, min(dur, a + b), o, False))
        last = s
        u = rng.random()
        step = (
            rng.uniform(-0.8, -0.05) * min(1.0, d)
            if u < overlap
            else rng.uniform(0, 0.35)
            if u < overlap + gap + 0.25
            else rng.uniform(0.2, 2.2)
            if u < 1 - pause / 2
            else rng.uniform(1, 5)
        )
        t += d + step
    return sorted(x for x in out if x[1] - x[0] > 0.12)
