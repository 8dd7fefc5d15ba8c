"""Exported weights back into the networks, as they are evaluated: the batch norms that were folded become y = x + b."""
import torch
import export
from networks import TRUNK


def restore(path, emb, seg):
    """fills both networks, -> prior of the running mean [64]"""
    t = {k: torch.from_numpy(v.astype('float32')) for k, v in export.read(path)[1].items()}

    def shift(bn, b):
        bn.weight.data.fill_(1.0)
        bn.bias.data.copy_(b)
        bn.running_mean.zero_()
        bn.running_var.fill_(1.0 - bn.eps)

    def conv(m, bn, name):
        m.weight.data.copy_(t[name + '.w'].view_as(m.weight))
        shift(bn, t[name + '.b'])

    def plain(m, name):
        m.weight.data.copy_(t[name + '.w'].view_as(m.weight))
        m.bias.data.copy_(t[name + '.b'])

    conv(emb.stem, emb.bn0, 'emb.stem')
    for k, b in enumerate(emb.blocks):
        conv(b.c1, b.b1, 'emb.blk%d.c1' % k)
        conv(b.c2, b.b2, 'emb.blk%d.c2' % k)
        if b.sc is not None:
            conv(b.sc, b.bs, 'emb.blk%d.sc' % k)
    plain(emb.att1, 'emb.att1')
    plain(emb.att2, 'emb.att2')
    shift(emb.bnp, torch.zeros(2 * TRUNK))
    conv(emb.fc, emb.bno, 'emb.fc')
    conv(seg.c1, seg.n1, 'seg.c1')
    conv(seg.c2, seg.n2, 'seg.c2')
    conv(seg.proj, seg.np, 'seg.proj')
    for k, b in enumerate(seg.blocks):
        conv(b.a, b.n, 'seg.blk%d.a' % k)
        plain(b.b, 'seg.blk%d.b' % k)
    for d, s in (('fw', ''), ('bw', '_reverse')):
        for n, p in (('wih', 'weight_ih_l0'), ('whh', 'weight_hh_l0'), ('bih', 'bias_ih_l0'), ('bhh', 'bias_hh_l0')):
            getattr(seg.gru, p + s).data.copy_(t['seg.gru.%s.%s' % (d, n)])
    plain(seg.l1, 'seg.l1')
    plain(seg.l2, 'seg.l2')
    return t['feat.prior'].numpy()
