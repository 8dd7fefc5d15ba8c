#!/usr/bin/python3
"""Decodes the single speakers of SPEECH (../shared/speech) into the store that voices.py reads.

unpack.py SPEECH OUT

OUT/pool.i16: the utterances of all speakers, 16 kHz mono int16 little-endian, 1.6 GB. OUT/index.json: [{corpus,
speaker, split, seconds, utts: [[first sample, samples]]}]. Needs ffmpeg and numpy."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np

RATE = 16000


def samples(path):
    """a file of any format -> int16 [n]"""
    raw = subprocess.run(
        ['ffmpeg', '-v', 'error', '-i', path, '-f', 's16le', '-ar', str(RATE), '-ac', '1', '-'],
        capture_output=True,
        check=True,
    ).stdout
    return np.frombuffer(raw, '<i2')


def spans(utterances, n, least=0):
    """[(start, seconds)] of a file of n samples -> [(first sample, samples)] of those with more than `least` samples"""
    out = []
    for start, seconds in utterances:
        a = int(round(start * RATE))
        length = min(int(round(seconds * RATE)), n - a)
        if length > least:
            out.append((a, length))
    return out


def main():
    speech, out = sys.argv[1:]
    speakers = os.path.join(speech, 'speakers')
    entries = json.load(open(os.path.join(speakers, 'index.json')))
    os.makedirs(out, exist_ok=True)
    index, size = [], 0
    with open(os.path.join(out, 'pool.i16'), 'wb') as pool, ThreadPoolExecutor(os.cpu_count()) as workers:
        for e, x in zip(entries, workers.map(lambda e: samples(os.path.join(speakers, e['file'])), entries)):
            utts = []
            for a, n in spans(e['utterances'], len(x), RATE // 10):
                pool.write(x[a : a + n].tobytes())
                utts.append([size, n])
                size += n
            index.append(
                dict(
                    corpus=e['corpus'],
                    speaker=e['speaker'],
                    split=e['split'],
                    seconds=round(sum(n for _, n in utts) / RATE, 1),
                    utts=utts,
                )
            )
    json.dump(index, open(os.path.join(out, 'index.json'), 'w'))


if __name__ == '__main__':
    main()
