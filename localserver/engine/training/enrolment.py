#!/usr/bin/python3
"""Meetings of people who have enrolled, and their enrolment speech: for calibrating and measuring voiceprints.

enrolment.py --speech SPEECH --out OUT [--split dev] [--count N] [--seed N] [--channels SHARE]

OUT/meetings/X.wav, .rttm, .uem: meetings as those of the simulated sets. OUT/people/NAME.wav: 15 s of each person, of
sentences that occur in no meeting. OUT/enrolled.json: {meeting: {"2": [names], "8": [...], "50": [...]}}, who has
enrolled. In each meeting one person, or two of five or more, never has. SHARE of the meetings and of the enrolment
speech go through a chain of channels.py each. Needs ffmpeg, numpy, scipy and soundfile. SPEECH is ../shared/speech."""
import argparse
import json
import os
import numpy as np
import soundfile as sf
import meeting
from channels import Channels
from unpack import RATE, samples, spans

ENROLMENT = 15  # seconds
REST = 10  # seconds that a person needs beyond the enrolment to be in meetings
SENTENCES = ('cv-', 'speechocean', 'korean', 'alphanum')  # corpora of people with several recordings each
SIZES = (2, 8, 50)
PEOPLE = {2: 0.1, 3: 0.2, 4: 0.3, 5: 0.2, 6: 0.2}


def divide(x, utterances):
    """samples of a person -> enrolment speech, [(first sample, samples)] of the rest"""
    parts, rest, left = [], [], ENROLMENT * RATE
    for a, length in spans(utterances, len(x)):
        n = min(left, length)
        if n > 0:
            parts.append(x[a : a + n])
            left -= n
        elif length > RATE // 2:
            rest.append((a, length))
    if left <= 0 and not rest:  # one long recording
        rest = [(a + n, length - n)]
    return np.concatenate(parts), rest


def main():
    ap = argparse.ArgumentParser()
    for o in ('speech', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--split', choices=('train', 'dev'), default='dev')
    ap.add_argument('--count', type=int, default=16)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--people', type=int, default=150, help='people at most')
    ap.add_argument('--channels', type=float, default=0.0)
    a = ap.parse_args()
    rng, channels = np.random.RandomState(a.seed), Channels(np.random.default_rng(a.seed))

    def through_a_channel(path):
        if rng.rand() < a.channels:
            channels.apply_to_file(path, channels.draw())

    speakers = os.path.join(a.speech, 'speakers')
    index = [e for e in json.load(open(os.path.join(speakers, 'index.json'))) if e['split'] == a.split]
    seconds = lambda e: sum(n for _, n in e['utterances'])
    several = [
        e
        for e in index
        if e['corpus'].startswith(SENTENCES) and len(e['utterances']) > 1 and seconds(e) >= ENROLMENT + REST
    ]
    several = [several[i] for i in rng.permutation(len(several))[: a.people]]
    once = [e for e in index if e['corpus'] == 'librispeech'][: max(SIZES) if a.count else 0]  # 15 s: enrolled only
    os.makedirs(os.path.join(a.out, 'people'), exist_ok=True)
    members, only = [], []
    for e in several + once:
        x = samples(os.path.join(speakers, e['file']))
        speech, rest = divide(x, e['utterances'])
        name = meeting.name_of(e)
        if len(speech) < 13 * RATE:
            continue
        sf.write(os.path.join(a.out, 'people', name + '.wav'), speech, RATE, subtype='PCM_16')
        through_a_channel(os.path.join(a.out, 'people', name + '.wav'))
        if e['corpus'] == 'librispeech':
            only.append(name)
        elif sum(n for _, n in rest) >= REST // 2 * RATE:
            members.append(dict(corpus=e['corpus'], speaker=e['speaker'], pool=x, utts=rest))
    templates = meeting.load_templates(os.path.join(a.speech, 'turn-taking', 'AMI-%s-only_words.rttm' % a.split))
    enrolled = {}
    for i in range(a.count):
        k = int(rng.choice(list(PEOPLE), p=list(PEOPLE.values())))
        order = [members[j] for j in rng.permutation(len(members))]
        people, others = order[:k], [meeting.name_of(e) for e in order[k:]] + only
        name = '%s-%03d' % (a.split, i)
        try:
            meeting.make(
                os.path.join(a.out, 'meetings'),
                name,
                people,
                templates,
                None,
                rng,
                rng.uniform(100, 180),
                str(rng.choice(['interview', 'meeting', 'meeting'])),
            )
        except meeting.NoTemplate:
            continue
        through_a_channel(os.path.join(a.out, 'meetings', name + '.wav'))
        known = [meeting.name_of(e) for e in people[: k - (2 if k >= 5 else 1)]]
        enrolled[name] = {n: (known + others)[:n] for n in SIZES}
    json.dump(enrolled, open(os.path.join(a.out, 'enrolled.json'), 'w'), indent=1)


if __name__ == '__main__':
    main()
