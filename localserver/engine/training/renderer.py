"""Training examples: 40 s of simulated conversation as mel energies, with who talks when, rendered by worker
processes.

An example is four quarters of 10 s of the same people: two conversations of 20 s in different rooms (simulate.py), 40
s of a meeting (meeting.py), or two excerpts of AMI trn. It is given clean, and mostly once more through a chain of
channels.py."""
import glob
import os
from typing import NamedTuple
import numpy as np
import features as FT
import meeting
import turns as T
from acoustics import load_audio
from channels import Channels
from simulate import Simulator
from targets import AMI_TRAIN, classes, masks_of, real_excerpt, recordings
from voices import SR, Tract, Voices

SPEEDS = (0.87, 1.0, 1.15)  # of people with their own voices, each a class of its own
QUARTERS, SECONDS = 4, 10
STEPS, FRAMES = SECONDS * 25, SECONDS * 100 - 2  # of a quarter: 40 ms, 10 ms
STRETCH = 2 * SECONDS * 100  # frames of the two halves that an example has, padded
MASKS = 14  # of a quarter
WINDOWS = 3  # of 5 s in a quarter: the first, any, the last
REAL, MEETING = 0.03, 0.35  # shares of the examples
ENERGY_FLOOR = 1e-10  # added to mel energies before the logarithm


class Example(NamedTuple):
    """One variant (clean, or through channels) of an example."""

    frames: np.ndarray  # log mel energies [2 STRETCH, 64] float16
    masks: np.ndarray  # of single-speaker speech [QUARTERS, MASKS, STEPS] float16
    # whose [QUARTERS, MASKS] int64: class of the person's voice, from `classes` on a voice that nobody has, -1 none
    people: np.ndarray
    speakers: np.ndarray  # number of the training speaker whose speech it is, likewise
    corpora: np.ndarray  # of this speaker, likewise
    windows: np.ndarray  # powerset classes [QUARTERS, WINDOWS, 250] int8
    at: int  # step at which the second window begins


def room_responses(folder):
    out = []
    for f in sorted(glob.glob(os.path.join(folder, 'rooms', '*.flac'))):
        h = load_audio(f)[: SECONDS * 1600]
        out.append((h / np.sqrt((h * h).sum())).astype(np.float32))
    return out


class Reader(meeting.VoiceReader):
    """A person of an example, which needs less speech than a whole meeting."""

    ENOUGH = 25 * SR


def energies(x):
    """samples of 20 s -> log mel energies [STRETCH, 64] float16"""
    p = FT.power(x)[:STRETCH]
    return np.log(np.pad(p, ((0, STRETCH - len(p)), (0, 0)), 'edge') + ENERGY_FLOOR).astype(np.float16)


class Renderer:
    """Draws examples. split: of the speakers. seed() gives a copy in another process numbers, rooms and noises of its
    own."""

    def __init__(self, store, speech, split, seed, strangers=0.5, channels=0.65):
        self.strangers, self.share = strangers, channels
        templates = os.path.join(speech, 'turn-taking', 'AMI-%s-only_words.rttm' % split)
        self.sim = Simulator(Voices(store, split), T.load_templates(templates), os.path.join(speech, 'noise'), seed)
        self.meetings, self.noises = meeting.load_templates(templates), meeting.load_noises(speech)
        rooms = room_responses(speech)
        self.sim.banks.real_rir += rooms
        self.rooms = rooms
        self.real = list(recordings(os.path.join(speech, 'real-dev'), AMI_TRAIN)) if split == 'train' else []
        self.classes = len(SPEEDS) * len(self.sim.voices.speakers)
        self.corpora = {c: i for i, c in enumerate(self.sim.voices.corpora)}
        self.use(seed)

    def use(self, seed):
        self.sim.rng, self.random = np.random.default_rng(seed), np.random.RandomState(seed)
        self.channels = Channels(self.sim.rng, self.rooms)
        self.unknown = self.classes + seed * 10**7  # the next voice that nobody has

    def seed(self, seed):
        self.use(seed)
        self.sim.banks.draw(self.sim.rng, self.sim.voices)

    def people(self, count):
        """-> numbers of speakers, their speeds, vocal tracts or None, classes of the voices"""
        r, v = self.sim.rng, self.sim.voices
        ids = v.pick(r, count, same=0.8)
        if r.random() < self.strangers:
            self.unknown += count
            return (
                ids,
                [r.uniform(0.82, 1.22) for _ in ids],
                [Tract(r) for _ in ids],
                list(range(self.unknown - count, self.unknown)),
            )
        speeds = r.integers(len(SPEEDS), size=count)
        return ids, [SPEEDS[k] for k in speeds], None, [len(SPEEDS) * i + int(k) for i, k in zip(ids, speeds)]

    def conversations(self):
        """two conversations of 20 s of the same people -> ([samples], [who talks: bool [STRETCH, people]], numbers of
        the speakers, classes)"""
        r, sim = self.sim.rng, self.sim
        turns = []
        for _ in range(2):
            turns.append(
                sim.turns_for(2.0 * SECONDS, 3 if r.random() < 0.8 else 4)
                if r.random() < 0.5
                else T.dense(r, 2 * SECONDS, int(r.choice([2, 3, 4], p=[0.4, 0.4, 0.2])), 0.6, 3.5, overlap=0.2)
            )
        ids, speeds, tracts, numbers = self.people(max(2, 1 + max([s for t in turns for _, _, s, _ in t], default=1)))
        X, L = [], []
        for t in turns:
            kw = dict(snr=r.uniform(4, 32)) if r.random() < 0.5 else {}
            if r.random() < 0.3:
                kw['wander'] = r.uniform(0.5, 3.0)
            y, lab = sim.conversation(
                2.0 * SECONDS, t, ids, speeds, hard=r.random() < 0.5, tracts=tracts, fresh=0.5, **kw
            )
            X.append(y)
            L.append(lab)
        return X, L, ids, numbers

    def meeting(self):
        """40 s of a meeting, likewise; raises meeting.NoTemplate"""
        r, v = self.sim.rng, self.sim.voices
        turns = meeting.excerpt(
            self.meetings, self.random, 4.0 * SECONDS, int(r.choice([2, 3, 4], p=[0.4, 0.35, 0.25]))
        )
        style = str(r.choice(['interview', 'meeting', 'meeting']))
        if style == 'interview':
            turns = meeting.one_after_the_other(self.random, turns, 4 * SECONDS)
        ids, speeds, tracts, numbers = self.people(1 + max(p for _, _, p in turns))
        people = [
            dict(
                utts=[(u[0], u[1] * FT.HOP) for u in v.speakers[i][2]],
                pool=v.pcm,
                speed=s,
                tract=tracts[k] if tracts else None,
            )
            for k, (i, s) in enumerate(zip(ids, speeds))
        ]
        x, truth, _ = meeting.simulated(people, self.noises, self.random, turns, style, Reader)
        n = 2 * STRETCH
        lab, t = np.zeros((n, max(3, len(ids))), bool), (np.arange(n) + 0.5) * 0.01
        for p, spans in truth.items():
            for a, b in spans:
                lab[(t >= a) & (t < b), p] = True
        x = np.pad(x, (0, max(0, n * FT.HOP - len(x))))[: n * FT.HOP] * 10 ** (r.uniform(-30, 0) / 20)
        x = np.round(x * 32768).astype(np.float32) / np.float32(32768)
        return list(x.reshape(2, -1)), list(lab.reshape(2, STRETCH, -1)), ids, numbers

    def excerpts(self):
        X, L = zip(*(real_excerpt(self.sim.rng, self.real, self.sim, 2 * SECONDS) for _ in range(2)))
        return list(X), list(L), [], []

    def example(self):
        """-> its variants [Example]"""
        r, u, one = self.sim.rng, self.sim.rng.random(), False
        try:
            if self.real and u < REAL:
                X, L, ids, numbers = self.excerpts()
            elif u < REAL + MEETING:
                X, L, ids, numbers = self.meeting()
                one = True
            else:
                X, L, ids, numbers = self.conversations()
        except meeting.NoTemplate:
            return self.example()
        variants = [[energies(x) for x in X]]
        if r.random() < self.share:
            chain = self.channels.draw()
            Z = (
                np.split(self.channels.apply(np.concatenate(X), chain), 2)
                if one
                else [self.channels.apply(x, self.channels.draw()) for x in X]
            )
            variants.append([energies(z.astype(np.float32)) for z in Z])
        at = int(r.integers(1, 5)) * 25
        M, W = np.zeros((QUARTERS, MASKS, STEPS), np.float16), np.zeros((QUARTERS, WINDOWS, 250), np.int8)
        Y, S, C = (np.full((QUARTERS, MASKS), -1, np.int64) for _ in range(3))
        for q in range(QUARTERS):
            part = L[q // 2][q % 2 * SECONDS * 100 :][: SECONDS * 100]
            for i, s in enumerate((0, at * 4, 500)):
                W[q, i] = classes(part[s : s + 500])
            pm = [m for _ in range(2) for m in masks_of(r, part[:FRAMES, : len(ids)], len(ids), 5)] if ids else []
            for j, i in enumerate(r.permutation(len(pm))[:MASKS]):
                s, m = pm[i]
                m = np.pad(m, (0, 4 * STEPS - FRAMES)).reshape(STEPS, 4).mean(1)
                if m.sum() > 3:
                    M[q, j], Y[q, j], S[q, j], C[q, j] = (
                        m,
                        numbers[s],
                        ids[s],
                        self.corpora[self.sim.voices.speakers[ids[s]][0]],
                    )
        return [Example(np.concatenate(v), M, Y, S, C, W, at) for v in variants]


def prior(renderer, count=120):
    """mean frame of speech relative to its level, over conversations [64] float32"""
    acc = np.zeros(64)
    for _ in range(count):
        end = FT.long_running(FT.power(renderer.sim.conversation(10.0)[0]))
        acc += (end.mean - end.level) / count
    return acc.astype(np.float32)
