"""The cohort of the clustering (../clustering/cohort.go): means of groups of similar people, none of whom is in it alone.

cohort.py --weights HUBW --out cohort.bin MEETINGS...

MEETINGS are folders that meetings.py has made of training speakers. A person's embedding in a meeting is the mean of segments of about a second in which nobody
else talks. k-means with the cosine makes --size means of all, and --conference means of the people of every fourth meeting as conference software sends it,
which the meetings do not have. OUT has a byte for each of their 128 values, value times SCALE. About 7 minutes for 850 meetings on two cores."""
import argparse
import functools
import multiprocessing as mp
import numpy as np
import torch
import torch.nn.functional as F
import features as FT
from channels import conference
from networks import Embedder, Segmenter, has_bfloat16, pool_many
from restore import restore
from targets import recordings, reference

SCALE, STEPS, MARGIN = 320, 1500, 50             # steps of 40 ms that are computed at once, and those around them that the trunk sees


@functools.cache
def network(weights):
    torch.set_num_threads(1)
    emb = Embedder()
    prior = restore(weights, emb, Segmenter())
    emb = emb.eval().to(memory_format=torch.channels_last)
    emb.bf16 = has_bfloat16()
    return emb, prior


@torch.no_grad()
def people(job):
    """(weights, samples, turns, None or the seed of the conference software that the recording goes through) -> is it one of these, the embedding [128] of each of its people"""
    weights, x, turns, seed = job
    if seed is not None:
        x = conference(x, np.random.default_rng(seed))
    emb, prior = network(weights)
    f = torch.from_numpy(FT.normalised(x, prior))
    labels = reference(turns, len(f) // 2)[1::2]                       # of every step of 40 ms
    single = torch.from_numpy(labels & (labels.sum(1, keepdims=True) == 1))
    sums = torch.zeros(single.shape[1], 128)
    for at in range(0, len(single), STEPS):
        begin = max(0, at - MARGIN)
        h = emb.trunk(f[None, 4 * begin:4 * (at + STEPS + MARGIN)])[:, :, at - begin:][:, :, :STEPS]
        own = single[at:at + h.shape[2]]
        segments = [(k, i) for k in range(own.shape[1]) for i in torch.split(torch.nonzero(own[:, k])[:, 0], 25) if len(i) >= 15]
        if not segments:
            continue
        M = torch.zeros(1, len(segments), h.shape[2])
        for n, (_, i) in enumerate(segments):
            M[0, n, i] = 1
        e = F.normalize(emb.bno(emb.fc(emb.bnp(pool_many(emb, h[:, :, :len(own)], M[:, :, :len(own)])[0]))))
        sums.index_add_(0, torch.tensor([k for k, _ in segments]), e)
    return seed is not None, F.normalize(sums[sums.norm(dim=1) > 3]).numpy()      # of about four segments and more


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
    ap.add_argument('--weights', required=True); ap.add_argument('--size', type=int, default=512); ap.add_argument('--conference', type=int, default=256); ap.add_argument('--jobs', type=int, default=2)
    ap.add_argument('--out', required=True); ap.add_argument('meetings', nargs='+')
    a = ap.parse_args()
    jobs = ((a.weights, x, turns, seed) for folder in a.meetings for i, (_, x, turns) in enumerate(recordings(folder)) for seed in ((None, i) if i % 4 == 0 else (None,)))
    with mp.Pool(a.jobs) as pool:
        found = list(pool.imap(people, jobs))
    x, y = (np.concatenate([e for through, e in found if through == which]) for which in (False, True))
    c = np.concatenate([means(x, a.size), means(y, a.conference)])
    np.clip(np.rint(c * SCALE), -127, 127).astype(np.int8).tofile(a.out)
    print('%d means of %d people; a person has a mean cosine of %.3f with the five nearest' % (len(c), len(x) + len(y), np.sort(np.concatenate([x, y]) @ c.T, 1)[:, -5:].mean()))


if __name__ == '__main__':
    main()
