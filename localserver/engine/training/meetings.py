"""Meetings of training speakers in the manner of the simulated sets, as recordings: OUT/<name>-000.wav, .rttm, .uem, ...

meetings.py --prototype PIPELINE --store STORE --extra SYNTH --templates AMI-train.rttm --noise WAVS --out OUT --name NAME --count N --seed N

The rooms, the noise and the plan of turns are those of simulate_meetings.py in PIPELINE (../shared/prototype/pipeline); WAVS holds the noises that are no
room responses, as wav. New here: who talks. Whole sentences of people that come in several clips (two in three meetings), readers of one corpus, spelt letters, words,
synthetic voices; in half of the meetings everybody has a voice that nobody has (Tract). People read their clips in any order, so that what is said of one
person at two times is mostly of two sentences. In --microphones of the meetings every clip is heard as by another microphone, on another day: so it is in
Common Voice, and what is one person there must not hang on it. pooled.py and hear.py listen to them."""
import argparse
import json
import os
import sys
import numpy as np
from voices import Tract, stretch

SHARES = {                                                           # of the kinds of people
    'all': dict(fluent=.40, cv=.10, speechocean=.08, librispeech=.20, alphanum=.05, words=.04, mixed=.09, synthetic=.04),
    'sentences': dict(several=.55, cv3=.40, speechocean=.05),        # of the people with three clips or more
}
PEOPLE = {2: .14, 3: .20, 4: .24, 5: .16, 6: .12, 7: .07, 8: .07}
STRANGERS, NATURAL = .5, (.87, 1., 1., 1.15)                         # share of meetings of strangers; speeds of the others
SECONDS = (100, 180)
COLOUR, FLOOR = (80., 250., 700., 1800., 3800., 7500.), (22., 45.)    # Hz between which a microphone's gain is drawn; dB of its noise below the clip


def kinds_of(index, extra):
    """{kind: entries of the store}"""
    of = lambda *names: [e for e in index if e['corpus'] in names or 'cv' in names and e['corpus'].startswith('cv-') or 'speechocean' in names and e['corpus'].startswith('speechocean')]
    cv, so = of('cv'), of('speechocean')
    k = dict(cv=[e for e in cv if e['seconds'] >= 8 and len(e['utts']) >= 2], speechocean=so, librispeech=[e for e in of('librispeech') if e['seconds'] > 8],
             alphanum=of('alphanum'), words=of('arabic', 'dspspeech', 'gsc', 'vctk'), synthetic=extra, cv3=[e for e in cv if e['seconds'] >= 10 and len(e['utts']) >= 3])
    k['fluent'] = k['cv'] + so
    k['several'] = k['cv3'] + so[::3]
    k['mixed'] = k['librispeech'] + k['alphanum'] + k['fluent'] + k['words'][::8]
    return k


class Microphones:
    """a pool of clips, each through a microphone of its own"""

    def __init__(self, pool, rng):
        self.pool, self.rng = pool, rng

    def __getitem__(self, clip):
        x, g = np.asarray(self.pool[clip], np.float32), self.rng
        f = np.fft.rfftfreq(len(x), 1 / 16000.) + 20
        gain = 10 ** (np.interp(np.log(f), np.log(COLOUR), g.normal(0, 3.5, len(COLOUR))) / 20)
        noise = np.fft.rfft(g.standard_normal(len(x))) * f ** -g.uniform(0, 1.)
        noise *= np.sqrt((x ** 2).mean()) / (np.fft.irfft(noise, len(x)).std() + 1e-9) * 10 ** (-g.uniform(*FLOOR) / 20)
        y = np.fft.irfft((np.fft.rfft(x) + noise) * gain, len(x))
        return y * (np.sqrt((x ** 2).mean()) / (y.std() + 1e-9))


def main():
    ap = argparse.ArgumentParser()
    for o in ('prototype', 'store', 'extra', 'templates', 'noise', 'out', 'name'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--kinds', choices=sorted(SHARES), default='all'); ap.add_argument('--count', type=int, default=350); ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--microphones', type=float, default=0., help='share of the meetings')
    a = ap.parse_args()
    sys.path.insert(0, a.prototype)
    import simulate_meetings as S
    read = lambda d: [dict(e, pool=os.path.join(d, 'pool.i16')) for e in json.load(open(os.path.join(d, 'index.json'))) if e['split'] == 'train']
    kinds = kinds_of(read(a.store), read(a.extra))
    pools = {d: np.memmap(os.path.join(d, 'pool.i16'), '<i2', 'r') for d in (a.store, a.extra)}

    class Tape(S.Tape):
        """as there, in the voice that the meeting gives to its people"""

        def __init__(self, pool, ent, rng):
            pool = pools[os.path.dirname(ent['pool'])]
            super().__init__(Microphones(pool, g) if ent['clips'] else pool, ent, rng)
            if ent['speed'] != 1.:
                self.x = stretch(self.x.astype(np.float32), ent['speed'])
            if ent['tract'] is not None:
                self.x = ent['tract'].speak(self.x)
            self.p = rng.randint(len(self.x))
    S.Tape = Tape
    rng, g = np.random.RandomState(a.seed), np.random.default_rng(a.seed)
    templates = S.rttm(a.templates)
    shares = SHARES[a.kinds]
    for i in range(a.count):
        c = kinds[str(rng.choice(list(shares), p=list(shares.values())))]
        k = int(rng.choice(list(PEOPLE), p=list(PEOPLE.values())))
        strange, clips = rng.rand() < STRANGERS, a.microphones > 0 and g.random() < a.microphones
        who = [dict(c[j], clips=clips, speed=float(g.uniform(.82, 1.22) if strange else g.choice(NATURAL)), tract=Tract(g) if strange else None) for j in rng.permutation(len(c))[:k]]
        try:
            S.meeting('%s-%03d' % (a.name, i), a.out, a.noise, None, who, templates, rng, len(who), rng.uniform(*SECONDS), str(rng.choice(['interview', 'meeting', 'meeting'])))
        except SystemExit:                                           # no piece of a real meeting has so many people
            continue


if __name__ == '__main__':
    main()
