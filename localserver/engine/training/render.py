"""Conversations of training speakers as recordings: OUT/<name>-000.wav, .rttm, .uem, ...

render.py --store STORE --extra SYNTH --templates AMI.rttm --noise NOISE --out OUT --name NAME --count N --seed N

80 to 120 s each, one to six people, turns of annotated meetings or random ones, in three of ten somebody away for a while, in most of them much that is
said at once; some are of voices that nobody has ("Strangers" in the README). The engine hears them (`eval --pieces`), and train_backend.py learns from
that; hear.py runs the trunk over them, and train_windows.py learns from that."""
import argparse
import os
import numpy as np
import soundfile as sf
import turns as T
from measure_embedder import recordings
from measure_segmenter import SETS
from simulate import SR, Simulator
from train_segmenter import real_piece
from voices import Tract, Voices

AWAY = (30., 70.)                                                    # s
REAL = 24                                                            # s of a real piece
INTERRUPTED = .65                                                    # of the conversations


def turns_of(r, sim, dur):
    """[(start, end, speaker, continued)] of a conversation, s"""
    if r.random() < .5:
        turns = T.from_template(r, sim.t, dur, int(r.choice([3, 4, 5])))
    else:
        most = int(r.choice([1, 2, 3, 4, 5, 6], p=[.04, .2, .26, .28, .16, .06]))
        turns = T.dense(r, dur, most, r.choice([.3, .6, 1.]), r.choice([2., 4., 7.]), overlap=r.choice([.1, .3, .5]))
    if r.random() < INTERRUPTED:
        turns = T.interrupt(r, turns, dur)
    k = people(turns)
    if k > 1 and r.random() < .3:
        who, a = int(r.integers(k)), r.uniform(5, dur - 50)
        b = a + r.uniform(*AWAY)
        turns = [t for t in turns if t[2] != who or t[1] < a or t[0] > b]
    return turns


def people(turns):
    return max([s for _, _, s, _ in turns], default=-1) + 1


def stretches(on, step=.01):
    """bool [n] -> [(start, end)] of what is true, s"""
    d = np.diff(np.r_[0, on.astype(np.int8), 0])
    return [(a * step, b * step) for a, b in zip(np.flatnonzero(d == 1), np.flatnonzero(d == -1))]


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'extra', 'templates', 'noise', 'out', 'name'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--count', type=int, default=300); ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--strangers', type=float, default=.5, help='share of conversations of voices that nobody has')
    ap.add_argument('--wander', type=float, default=.4, help='share of conversations in which people move between turns')
    ap.add_argument('--fresh', type=float, default=0., help='share of turns that are read elsewhere in what there is of a speaker')
    ap.add_argument('--real', help='SPEECH: pieces of its AMI trn instead, at another speed, in another room')
    a = ap.parse_args()
    sim = Simulator(Voices(a.store, 'train', extra=a.extra), T.load_templates(a.templates), a.noise, a.seed)
    recs = recordings(os.path.join(a.real, 'real-dev'), SETS['ami_trn'][1]) if a.real else []
    os.makedirs(a.out, exist_ok=True)
    i = 0
    while i < a.count:
        if i % 40 == 39:
            sim.b = type(sim.b)(sim.rng, sim.v, a.noise, 40, 25, 40, 300, 100)
        y, lab = real_piece(sim.rng, recs, sim, REAL) if recs else conversation(sim, a)
        if y is None:
            continue
        name = '%s-%03d' % (a.name, i)
        path = os.path.join(a.out, name)
        sf.write(path + '.wav', y, SR, subtype='PCM_16')
        with open(path + '.rttm', 'w') as f:
            for s in range(lab.shape[1]):
                for b, e in stretches(lab[:, s]):
                    f.write('SPEAKER %s 1 %.2f %.2f <NA> <NA> s%d <NA> <NA>\n' % (name, b, e - b, s))
        with open(path + '.uem', 'w') as f:
            f.write('%s 1 0.000 %.3f\n' % (name, len(y) / SR))
        i += 1


def conversation(sim, a):
    """(float32 [n], bool [10 ms, people]), or None twice where nobody came"""
    r, v = sim.rng, sim.v
    dur = float(r.choice([80, 100, 120]))
    turns = turns_of(r, sim, dur)
    k = people(turns)
    if k == 0:
        return None, None
    ids = v.pick(r, k, same=.8)
    known = r.random() >= a.strangers
    speeds = [r.choice([.87, 1., 1., 1.15]) if known else r.uniform(.82, 1.22) for _ in ids]
    tracts = None if known else [Tract(r) for _ in ids]
    more = dict(snr=r.uniform(8, 32)) if r.random() < .6 else {}
    if r.random() < a.wander:
        more['wander'] = r.uniform(.5, 3.5)
    y, lab, _, _ = sim.conversation(dur, turns, ids, speeds, hard=r.random() < .5, tracts=tracts, fresh=a.fresh, **more)
    return y, lab


if __name__ == '__main__':
    main()
