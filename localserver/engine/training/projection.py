#!/usr/bin/python3
"""The projection of the voiceprints (../voiceprint/projection.go): within-class covariance normalisation.

projection.py --weights HUBW --out projection.bin FOLDER

FOLDER is what enrolment.py has made of training speakers: speech of each person alone and meetings, through channels.
OUT has the matrix W^-1/2 [128, 128], float32, row-major; W is the mean covariance of a person's embeddings in
different recordings, with a trace of 128, and RIDGE times the identity. A minute and a half for 240 meetings on two
cores, one of them busy."""
import argparse
import glob
import multiprocessing as mp
import os
import numpy as np
import soundfile as sf
from segments import person_embeddings
from targets import recordings

DIM, RIDGE = 128, 0.2


def embeddings(job):
    return person_embeddings(*job)


def alone(path):
    """samples and turns of a file in which one person speaks"""
    x, rate = sf.read(path, dtype='float32')
    return x, {os.path.splitext(os.path.basename(path))[0]: [(0, len(x) / rate)]}


def main():
    ap = argparse.ArgumentParser()
    for o in ('weights', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--jobs', type=int, default=2)
    ap.add_argument('folder')
    a = ap.parse_args()

    def jobs():
        for path in sorted(glob.glob(os.path.join(a.folder, 'people', '*.wav'))):
            yield (a.weights, *alone(path))
        for _, x, turns in recordings(os.path.join(a.folder, 'meetings')):
            yield a.weights, x, turns

    by_name = {}
    with mp.Pool(a.jobs) as pool:
        for recording in pool.imap(embeddings, jobs()):
            for name, e in recording.items():
                by_name.setdefault(name, []).append(e)
    within = np.concatenate([e - np.mean(e, 0) for e in by_name.values() if len(e) > 1])
    w = np.cov(within.T, bias=True)
    values, vectors = np.linalg.eigh(w / w.trace() * DIM + RIDGE * np.eye(DIM))
    (vectors / np.sqrt(values) @ vectors.T).astype('<f4').tofile(a.out)
    print('%d recordings of %d people' % (len(within), sum(len(e) > 1 for e in by_name.values())))


if __name__ == '__main__':
    main()
