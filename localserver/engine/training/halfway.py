"""Half-way in weights between the networks of two joint checkpoints, the first of which may be narrower: halfway.py A/joint.pt B/joint.pt OUT

What A lacks in width is as B has it, read half as much. Everything else of the checkpoint (class centres) is B's. Where B began at A,
the mean of both is no worse than either on most measures (Wortsman et al., arXiv 2203.05482)."""
import os
import sys
import torch
import export
from grow import grow
from networks import Embedder, Segmenter

a, b, out = torch.load(sys.argv[1]), torch.load(sys.argv[2]), sys.argv[3]
for key, net in (('ema_e', Embedder()), ('ema_s', Segmenter())):
    net.load_state_dict(b[key])
    grow(net, a[key])
    grown = net.state_dict()
    b[key] = {k: .5 * (w + grown[k]) if w.dtype.is_floating_point else w for k, w in b[key].items()}
os.makedirs(out, exist_ok=True)
torch.save(b, os.path.join(out, 'joint.pt'))
export.pair(os.path.join(out, 'joint.pt'), out)
