"""Who talks when in a simulated conversation: excerpts of annotated meetings (AMI train) or random turn taking.
A turn is (start s, end s, speaker 0.., talked already when the excerpt begins)."""
import collections
import numpy as np


def load_templates(path):
    """RTTM of many meetings -> list of float arrays [(start, end, speaker number)]"""
    m = collections.defaultdict(list)
    for line in open(path):
        p = line.split()
        if p and p[0] == 'SPEAKER':
            m[p[1]].append((float(p[3]), float(p[3]) + float(p[4]), p[7]))
    out = []
    for k in sorted(m):
        names = {n: i for i, n in enumerate(sorted({t[2] for t in m[k]}))}
        out.append(np.array([(a, b, names[n]) for a, b, n in sorted(m[k])]))
    return out


def from_template(rng, templates, dur, most=3):
    """An excerpt of a real meeting, sometimes run faster (denser changes), its `most` most talkative people."""
    want = rng.choice([1, 2, 3, 4], p=[.14, .4, .33, .13])
    turns = []
    for _ in range(10):
        t = templates[rng.integers(len(templates))]
        scale = rng.uniform(1, 2.2) if rng.random() < .4 else 1.
        t0 = rng.uniform(0, max(1., t[-1, 1] - dur * scale))
        k = (t[:, 1] > t0) & (t[:, 0] < t0 + dur * scale)
        turns = [(max(0., (a - t0) / scale), min(dur, (b - t0) / scale), int(s), a < t0) for a, b, s in t[k]]
        if len({s for _, _, s, _ in turns}) == want:
            break
    return largest(turns, most)


def largest(turns, most):
    c = collections.Counter()
    for a, b, s, _ in turns:
        c[s] += b - a
    keep = {s: i for i, (s, _) in enumerate(c.most_common(most))}
    return [(a, b, keep[s], f) for a, b, s, f in turns if s in keep]


def dense(rng, dur, k, shortest=.4, longest=4., overlap=.3, gap=.3, pause=.15, keep_on=.25):
    """k people taking turns: the next one starts overlapping, soon, or after a pause."""
    out, t, last = [], rng.uniform(-2, 1.), -1
    while t < dur:
        s = int(rng.integers(k))
        if k > 1 and s == last and rng.random() > keep_on:
            s = (s + 1 + int(rng.integers(k - 1))) % k
        d = np.exp(rng.uniform(np.log(shortest), np.log(longest)))
        if t + d > .15:
            out.append((max(0., t), min(dur, t + d), s, t < 0))
        if k > 1 and rng.random() < .12 and d > 1.2:                 # a short word of somebody else inside the turn
            o = (s + 1 + int(rng.integers(k - 1))) % k
            b = rng.uniform(.2, .7); a = t + rng.uniform(.2, d - b)
            if 0 < a < dur - .2:
                out.append((a, min(dur, a + b), o, False))
        last = s
        u = rng.random()
        step = rng.uniform(-.8, -.05) * min(1., d) if u < overlap else rng.uniform(0, .35) if u < overlap + gap + .25 else rng.uniform(.2, 2.2) if u < 1 - pause / 2 else rng.uniform(1, 5)
        t += d + step
    return sorted(x for x in out if x[1] - x[0] > .12)
