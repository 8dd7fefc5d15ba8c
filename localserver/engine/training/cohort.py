"""The cohort of the clustering (../clustering/cohort.go): means of groups of similar people. A few groups are of one
person.

cohort.py --weights HUBW --out cohort.bin MEETINGS...

MEETINGS are folders that meetings.py has made of training speakers. A person's embedding in a meeting is the mean of
segments of about a second in which nobody else talks. k-means with the cosine makes --size means of all, and
--conference means of the people of every fourth meeting as conference software sends it, which the meetings do not
have. OUT has a byte for each of their 128 values, value times SCALE. About 7 minutes for 850 meetings on two cores."""
import argparse
import multiprocessing as mp
import numpy as np
from channels import conference
from segments import person_embeddings
from targets import recordings

SCALE, DIM = 320, 128


def embeddings(job):
    """(weights, samples, turns, None or the seed of the conference software that the recording goes through) -> is it
    one of these, the embeddings [n, 128] of its people"""
    weights, x, turns, seed = job
    if seed is not None:
        x = conference(x, np.random.default_rng(seed))
    return seed is not None, np.array(list(person_embeddings(weights, x, turns).values())).reshape(-1, DIM)


def means(x, size, rounds=20):
    """k-means of rows of length 1"""
    c = x[np.random.default_rng(0).permutation(len(x))[:size]].copy()
    for _ in range(rounds):
        nearest = (x @ c.T).argmax(1)
        for k in range(size):
            if (nearest == k).any():
                c[k] = x[nearest == k].sum(0)
        c /= np.linalg.norm(c, axis=1, keepdims=True)
    return c


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--weights', required=True)
    ap.add_argument('--size', type=int, default=512)
    ap.add_argument('--conference', type=int, default=256)
    ap.add_argument('--jobs', type=int, default=2)
    ap.add_argument('--out', required=True)
    ap.add_argument('meetings', nargs='+')
    a = ap.parse_args()
    jobs = (
        (a.weights, x, turns, seed)
        for folder in a.meetings
        for i, (_, x, turns) in enumerate(recordings(folder))
        for seed in ((None, i) if i % 4 == 0 else (None,))
    )
    with mp.Pool(a.jobs) as pool:
        results = list(pool.imap(embeddings, jobs))
    x, y = (
        np.concatenate([e for through_conference, e in results if through_conference == which])
        for which in (False, True)
    )
    c = np.concatenate([means(x, a.size), means(y, a.conference)])
    np.clip(np.rint(c * SCALE), -127, 127).astype(np.int8).tofile(a.out)
    print(
        '%d means of %d people; a person has a mean cosine of %.3f with the five nearest'
        % (len(c), len(x) + len(y), np.sort(np.concatenate([x, y]) @ c.T, 1)[:, -5:].mean())
    )


if __name__ == '__main__':
    main()
