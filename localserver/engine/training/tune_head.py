"""Last step of the embedder: its head (attention, last layer, batch norms as fixed affine maps) on masks that the segmenter really
makes. The trunk stays as it is, so the segmenter is not touched. One vector for every local speaker of a window of a simulated
conversation; its name is the voice that talks most in the mask; masks without a clear owner are left out."""
import argparse
import math
import multiprocessing as mp
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import features as FT
import turns as T
from measure_embedder import dev_eer, dev_set, pieces, recordings
from measure_segmenter import POWER, load
from networks import WINDOW, Embedder
from simulate import Simulator, start_state
from train_embedder import SPEEDS, Heads
from voices import Voices


def worker(q, a, seed, prior):
    torch.set_num_threads(1)
    sim = Simulator(Voices(a.store, 'train'), T.load_templates(a.templates), a.noise, seed)
    r = sim.rng
    corpora = {c: i for i, c in enumerate(sim.v.corpora)}
    sim.kinds = (.44, .48, .08)
    while True:
        X, L, C, K = [], [], [], []
        for _ in range(a.convs):
            k = int(r.choice([2, 3, 4], p=[.3, .4, .3]))
            ids = sim.v.pick(r, k, same=.8)
            speeds = [SPEEDS[r.integers(3)] for _ in ids]
            turns = T.dense(r, a.seconds, k, .4, 4., overlap=.25) if r.random() < .6 else [t for t in T.from_template(r, sim.t, a.seconds, k)]
            y, lab, _, _ = sim.conversation(a.seconds, turns, ids, speeds, hard=r.random() < .7)
            f = FT.logmel(y)
            X.append(FT.normalise(f, *start_state(r, f, prior)).astype(np.float16))
            L.append(np.pad(lab[1::2], ((0, 0), (0, 4 - lab.shape[1])))[:, :4])
            C.append([ids[i] * 3 + SPEEDS.index(speeds[i]) if i < k else -1 for i in range(4)])
            K.append([corpora[sim.v.speakers[ids[i]][0]] if i < k else -1 for i in range(4)])
        q.put((np.stack(X), np.stack(L), np.array(C), np.array(K)))


def local_masks(seg, f, h, L, C, K, ends):
    """[(row, first step, mask [125], class, corpus)] of all windows"""
    x = seg.stream(f, h)
    out = []
    for e in ends:
        hard = POWER[seg.window(x[:, e - WINDOW:e]).argmax(2).numpy()]
        alone = hard & (hard.sum(2, keepdims=True) == 1)
        for b in range(len(f)):
            ref = L[b, (e - WINDOW) * 2:e * 2]
            for k in range(3):
                m = alone[b, :, k]
                if m.sum() < 20:
                    continue
                ov = ref[m[:len(ref)]].sum(0)
                if C[b, ov.argmax()] >= 0 and ov.max() > .5 * m.sum():
                    out.append((b, e - WINDOW, m.reshape(-1, 2).mean(1).astype(np.float32), C[b, ov.argmax()], K[b, ov.argmax()]))
    return out


def main():
    ap = argparse.ArgumentParser()
    for o in ('store', 'templates', 'noise', 'embedder', 'segmenter', 'out'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--real', help='folder of recordings with RTTM, to watch')
    ap.add_argument('--minutes', type=float, default=8); ap.add_argument('--lr', type=float, default=3e-4); ap.add_argument('--convs', type=int, default=18)
    ap.add_argument('--seconds', type=float, default=16.); ap.add_argument('--margin', type=float, default=.15); ap.add_argument('--seed', type=int, default=50)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    net, seg, prior = load(a.segmenter)
    ck = torch.load(a.embedder)
    net.load_state_dict(ck['ema'])
    heads = Heads(128, len(ck['heads']['w']))
    heads.load_state_dict(ck['heads'])
    q = mp.Queue(8)
    p = mp.Process(target=worker, args=(q, a, a.seed, prior), daemon=True)
    p.start()
    dev = dev_set(Simulator(Voices(a.store, 'dev'), T.load_templates(a.templates), a.noise, 5), 60)
    recs = recordings(a.real) if a.real else []
    tuned = [x for m in (net.att1, net.att2, net.bnp, net.fc, net.bno) for x in m.parameters()]
    for x in net.parameters():
        x.requires_grad_(False)
    for x in tuned:
        x.requires_grad_(True)
    ema = Embedder().eval()
    ema.load_state_dict(net.state_dict())
    opt = torch.optim.AdamW(tuned + list(heads.parameters()), lr=a.lr, weight_decay=.01)

    def watch():
        print('  dev EER ' + ' '.join('%.1f s %.2f' % x for x in dev_eer(ema, dev, prior).items()) +
              (' | real pieces 1.5 s %.1f, 3 s %.1f' % (pieces(ema, recs, prior)[0], pieces(ema, recs, prior, 3.)[0]) if recs else ''), flush=True)
    watch()
    t0, it, acc = time.time(), 0, np.zeros(4)
    steps = int(a.seconds * 25)
    while time.time() - t0 < a.minutes * 60:
        fr = (time.time() - t0) / (a.minutes * 60)
        opt.param_groups[0]['lr'] = a.lr * min(1, it / 50. + .02) * (.5 + .5 * math.cos(math.pi * fr)) + 1e-6
        X, L, C, K = q.get()
        f = torch.from_numpy(X.astype(np.float32))
        with torch.no_grad():
            net.bf16 = True
            h = net.trunk(f)
            mk = local_masks(seg, f, h, L, C, K, [e - int(np.random.randint(0, 10)) for e in (WINDOW + 10, (steps + WINDOW) // 2, steps)])
        if len(mk) < 8:
            continue
        b = torch.tensor([m[0] for m in mk])
        g = torch.stack([h[m[0], :, m[1]:m[1] + WINDOW] for m in mk])
        e = net.head(g, torch.from_numpy(np.stack([m[2] for m in mk])))
        aam, con = heads(e, torch.tensor([int(m[3]) for m in mk]), torch.tensor([int(m[4]) for m in mk]), b, a.margin)
        opt.zero_grad(set_to_none=True)
        (.5 * aam + con).backward()
        nn.utils.clip_grad_norm_(tuned, 5.)
        opt.step()
        it += 1
        d = min(.99, it / (it + 10.))
        with torch.no_grad():
            for n, v in ema.state_dict().items():
                if v.dtype.is_floating_point and not n.startswith(('stem', 'bn0', 'blocks')):   # the trunk stays to the bit
                    v.mul_(d).add_(net.state_dict()[n], alpha=1 - d)
        acc += (aam.item(), con.item(), len(mk), 1)
        if it % 50 == 0:
            print('%5.0f s step %d aam %.3f con %.3f masks %.0f' % (time.time() - t0, it, acc[0] / acc[3], acc[1] / acc[3], acc[2] / acc[3]), flush=True)
            acc[:] = 0
    watch()
    torch.save(dict(ema=ema.state_dict(), heads=heads.state_dict(), it=ck['it'], spent=ck['spent'], prior=prior, head=dict(steps=it, minutes=a.minutes), args=vars(a)), a.out)
    p.terminate()


if __name__ == '__main__':
    main()
