"""Carries what narrower networks have learnt over into wider ones. Old outputs stay what they were: weights from new inputs to old
outputs are 0, new outputs begin at random. Method: Net2Net (Chen et al., arXiv 1511.05641), with new units in place of copies."""
import torch
import torch.nn as nn

HALVES = ('bnp.', 'fc.')                         # their inputs are all means, then all deviations
READERS = ('att', 'fc.', 'proj.')                # what reads the trunk: nothing from its new channels at first


def grow(net, old):
    """net: freshly made; old: state dict of a network of the same form whose layers are as wide or narrower"""
    state = net.state_dict()
    for name, w in old.items():
        t = state[name]
        if t.shape == w.shape:
            t.copy_(w)
            continue
        if name.startswith(READERS):
            t.zero_()
        elif t.ndim > 1:
            t[:w.shape[0], w.shape[1]:] = 0
        parts, axis = 2 if name.startswith(HALVES) else 1, w.ndim - 1
        for a, b in zip(w.chunk(parts, axis), t.chunk(parts, axis)):
            b[tuple(slice(0, n) for n in a.shape)] = a
    net.load_state_dict(state)


@torch.no_grad()
def wake(net, old):
    """After calibrate_bn(): new channels get the mean scale and shift of the old ones of their layer."""
    for name, m in net.named_modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)) and len(old[name + '.weight']) != len(m.weight):
            parts = 2 if name + '.' in HALVES else 1
            for w, v in ((m.weight, old[name + '.weight']), (m.bias, old[name + '.bias'])):
                for a, b in zip(w.chunk(parts), v.chunk(parts)):
                    a[len(b):] = v.mean()
