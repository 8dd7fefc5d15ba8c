"""Stretches of 10 s of recordings as the segmenter trains on them, with the output of a frozen trunk.

stretches.py --weights HUBW --speech SPEECH --seed N --meetings FOLDER OUT               of meetings that meetings.py has made
stretches.py --weights HUBW --speech SPEECH --seed N --store STORE --count N OUT         of conversations of simulate.py, a few of them pieces of AMI trn

Every recording is heard --versions times, through a chain of channels.py in --channels of them, as a stream that begins with it or has run for long,
and divided into stretches from a random beginning. OUT/frames.f16 [n, 1000, 64], OUT/trunk.f16 [n, 768, 250], OUT/voices.u8 [n, 1000]: a bit for
each speaker who talks in a frame of 10 ms."""
import argparse
import os
import numpy as np
import torch
import features as FT
from channels import Channels
from networks import Embedder, Segmenter
from restore import restore
from targets import recordings, reference
from train import SECONDS, Renderer, room_responses

LENGTH = SECONDS * 100


def meetings(a):
    """(samples, bool [10 ms, speakers]) of each meeting"""
    for _, x, turns in recordings(a.meetings):
        yield x, reference(turns, len(x) // 320).repeat(2, 0)


def conversations(a, prior):
    a.noise, a.templates = os.path.join(a.speech, 'noise'), os.path.join(a.speech, 'turn-taking', 'AMI-train-only_words.rttm')
    r = Renderer(a, 'train', a.seed, None, prior)
    for _ in range(a.count):
        yield r.conversation(None)[:2]


def heard(x, labels, rng, prior):
    """-> frames [n, 1000, 64] and voices [n, 1000] of the stretches from a random beginning"""
    p, state = FT.power(x), FT.State()
    if rng.random() < .4:
        state = FT.settled(p, rng.choice([2000., 6000., FT.MAX_COUNT]), np.interp(np.arange(64), [0, 12, 30, 63], rng.normal(0, .15, 4)) + rng.normal(0, .15))
    f = FT.stream(p, prior, state)[0]
    begin = int(rng.integers(0, LENGTH)) if len(f) > 4 * LENGTH else 0
    n = (len(f) - begin + 2) // LENGTH                                 # the last two frames of a recording are missing
    f = np.pad(f[begin:begin + n * LENGTH], ((0, max(0, begin + n * LENGTH - len(f))), (0, 0)))
    bits = np.packbits(labels[:, :8], axis=1, bitorder='little')[:, 0][begin:begin + n * LENGTH]
    return f.reshape(n, LENGTH, 64), bits.reshape(n, LENGTH)


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'speech'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--meetings'); ap.add_argument('--store'); ap.add_argument('--count', type=int); ap.add_argument('--seed', type=int, required=True)
    ap.add_argument('--versions', type=int, default=2); ap.add_argument('--channels', type=float, default=.65)
    ap.add_argument('--strangers', type=float, default=.5); ap.add_argument('--real-share', type=float, default=.15)
    ap.add_argument('out')
    a = ap.parse_args()
    torch.set_num_threads(1)
    emb = Embedder().eval()
    prior = restore(a.weights, emb, Segmenter())
    emb = emb.to(memory_format=torch.channels_last)
    rng = np.random.default_rng(a.seed)
    channels = Channels(rng, room_responses(a.speech))
    os.makedirs(a.out, exist_ok=True)
    count = 0
    with open(os.path.join(a.out, 'frames.f16'), 'wb') as frames, open(os.path.join(a.out, 'trunk.f16'), 'wb') as trunk, open(os.path.join(a.out, 'voices.u8'), 'wb') as voices:
        for x, labels in meetings(a) if a.meetings else conversations(a, prior):
            for _ in range(a.versions):
                y = channels.apply(x, channels.draw()) if rng.random() < a.channels else x
                f, v = heard(y.astype(np.float32), labels, rng, prior)
                f = f.astype(np.float16)
                f.tofile(frames); v.tofile(voices)
                for at in range(0, len(f), 4):
                    emb.trunk(torch.from_numpy(f[at:at + 4].astype(np.float32))).half().numpy().tofile(trunk)
                count += len(f)
    print('%d stretches' % count, flush=True)


if __name__ == '__main__':
    main()
