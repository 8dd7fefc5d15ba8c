"""Meetings in the manner of the simulated sets, as recordings: OUT/<name>-000.wav, .rttm, .uem, ...

meetings.py --store STORE --speech SPEECH --out OUT --name NAME --count N --seed N

meeting.py makes each, of SPEECH, the speech collection. The people are drawn here: whole sentences of people that
come in several clips (two in three meetings), readers of one corpus, spelt letters, words; in
--strangers of the meetings everybody has a synthetic vocal tract (Tract). People read their clips in any order, so
that what is said of one person at two times is mostly of two sentences. --channels of the meetings go through a chain
of channels.py."""
import argparse
import json
import os
import numpy as np
import meeting
from channels import Channels
from renderer import room_responses
from voices import Tract

SHARES = {  # of the kinds of people
    'all': dict(
        fluent=0.40, cv=0.10, speechocean=0.08, librispeech=0.20, alphanum=0.05, words=0.04, mixed=0.09
    ),
    'sentences': dict(several=0.55, cv3=0.40, speechocean=0.05),  # of the people with three clips or more
}
PEOPLE = {2: 0.14, 3: 0.20, 4: 0.24, 5: 0.16, 6: 0.12, 7: 0.07, 8: 0.07}
NATURAL = (0.87, 1.0, 1.0, 1.15)  # speeds of people with their own voices
SECONDS = (100, 180)


def kinds_of(index):
    """{kind: entries of the store}"""

    def of_corpora(*prefixes):
        return [e for e in index if e['corpus'].startswith(prefixes)]

    cv, so = of_corpora('cv-'), of_corpora('speechocean')
    k = dict(
        cv=[e for e in cv if e['seconds'] >= 8 and len(e['utts']) >= 2],
        speechocean=so,
        librispeech=[e for e in of_corpora('librispeech') if e['seconds'] > 8],
        alphanum=of_corpora('alphanum'),
        words=of_corpora('arabic', 'dspspeech', 'gsc', 'vctk'),
        cv3=[e for e in cv if e['seconds'] >= 10 and len(e['utts']) >= 3],
    )
    k['fluent'] = k['cv'] + so
    k['several'] = k['cv3'] + so[::3]
    k['mixed'] = k['librispeech'] + k['alphanum'] + k['fluent'] + k['words'][::8]
    return k


def read_store(folder, split):
    """entries of the store's index, each with the samples of the store"""
    pool = np.memmap(os.path.join(folder, 'pool.i16'), '<i2', 'r')
    with open(os.path.join(folder, 'index.json')) as f:
        return [dict(e, pool=pool) for e in json.load(f) if e['split'] == split]


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'out', 'name', 'speech'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--kinds', choices=sorted(SHARES), default='all')
    ap.add_argument('--count', type=int, default=350)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--split', choices=('train', 'dev'), default='train')
    ap.add_argument('--strangers', type=float, default=0.5, help='share of the meetings')
    ap.add_argument('--channels', type=float, default=0.0, help='share of the meetings')
    a = ap.parse_args()
    kinds = kinds_of(read_store(a.store, a.split))
    rng, g = np.random.RandomState(a.seed), np.random.default_rng(a.seed)
    templates = meeting.load_templates(os.path.join(a.speech, 'turn-taking', 'AMI-train-only_words.rttm'))
    noises = meeting.load_noises(a.speech)
    shares = {k: v for k, v in SHARES[a.kinds].items() if kinds[k]}
    chance = np.array(list(shares.values())) / sum(shares.values())
    channels = Channels(g, room_responses(a.speech))
    for i in range(a.count):
        candidates = kinds[str(rng.choice(list(shares), p=chance))]
        k = int(rng.choice(list(PEOPLE), p=list(PEOPLE.values())))
        strangers = rng.rand() < a.strangers
        people = [
            dict(
                candidates[j],
                speed=float(g.uniform(0.82, 1.22) if strangers else g.choice(NATURAL)),
                tract=Tract(g) if strangers else None,
            )
            for j in rng.permutation(len(candidates))[:k]
        ]
        try:
            name = '%s-%03d' % (a.name, i)
            meeting.make(
                a.out,
                name,
                people,
                templates,
                noises,
                rng,
                rng.uniform(*SECONDS),
                str(rng.choice(['interview', 'meeting', 'meeting'])),
                meeting.VoiceReader,
            )
        except meeting.NoTemplate:
            continue
        if g.random() < a.channels:
            chain = channels.draw()
            channels.apply_to_file(os.path.join(a.out, name + '.wav'), chain)
            print(name, *[f.__name__ for f in chain], flush=True)


if __name__ == '__main__':
    main()
