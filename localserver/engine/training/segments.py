"""Segments of about a second of single-speaker speech of whole recordings, as the embedder pools them."""
import functools
import numpy as np
import torch
import export
import features as FT
from networks import has_bfloat16, pool_many
from targets import reference

SHORTEST, LONG = 15, 25  # steps of 40 ms: of a run of single-speaker speech, of a segment
STEPS, MARGIN = 1000, 50  # in which segments begin that are computed at once, and those around them that the trunk sees
MIN_LENGTH = 3  # length of the sum of a person's embeddings: that of about four segments


def cut_runs(single):
    """bool [T, people], at most one True in a step -> [(person, first step, end step)]: each run divided into equal
    parts of about LONG"""
    out = []
    for k in range(single.shape[1]):
        edges = np.flatnonzero(np.diff(np.r_[False, single[:, k], False]))
        for a, b in edges.reshape(-1, 2):
            if b - a >= SHORTEST:
                cut = np.linspace(a, b, max(1, round((b - a) / LONG)) + 1).round().astype(int)
                out += [(k, *c) for c in zip(cut, cut[1:])]
    return out


@functools.cache
def embedder(weights):
    """exported weights -> (embedder, prior of the running mean)"""
    torch.set_num_threads(1)
    tensors = export.read(weights)[1]
    emb = export.networks_of(tensors)[0].to(memory_format=torch.channels_last)
    emb.bf16 = has_bfloat16()
    return emb, tensors['feat.prior']


@torch.no_grad()
def pooled(weights, x, turns):
    """samples and {person: [(start, end) in s]} of a recording -> person [n], start and end [n] in s, pooled mean and
    deviation [n, 2 TRUNK] float16"""
    emb, prior = embedder(weights)
    f = torch.from_numpy(FT.normalised(x, prior))
    labels = reference(turns, len(f) // 2)[1::2]
    segments, rows = cut_runs(labels & (labels.sum(1, keepdims=True) == 1)), []
    for at in range(0, len(labels), STEPS):
        inside = [(a - at, b - at) for _, a, b in segments if at <= a < at + STEPS]
        if not inside:
            continue
        begin = max(0, at - MARGIN)
        h = emb.trunk(f[None, 4 * begin : 4 * (at + STEPS + MARGIN)])[:, :, at - begin :]
        M = torch.zeros(1, len(inside), h.shape[2])
        for n, (a, b) in enumerate(inside):
            M[0, n, a:b] = 1
        rows.append(pool_many(emb, h, M)[0].half().numpy())
    person, a, b = np.array(sorted(segments, key=lambda s: s[1] // STEPS)).reshape(-1, 3).T
    return person, a * 0.04, b * 0.04, np.concatenate(rows) if rows else np.zeros((0, emb.fc.in_features), np.float16)


@torch.no_grad()
def person_embeddings(weights, x, turns):
    """samples and {person: [(start, end) in s]} of a recording -> {person: mean embedding [128] of length 1}, of
    those with enough speech"""
    person, _, _, pool = pooled(weights, x, turns)
    emb = embedder(weights)[0]
    e = emb.head(torch.from_numpy(pool).float()).numpy()
    sums = {name: e[person == k].sum(0) for k, name in enumerate(turns)}
    return {name: v / np.linalg.norm(v) for name, v in sums.items() if np.linalg.norm(v) > MIN_LENGTH}
