"""Writes the networks as the Go engine loads them, and test vectors (a test signal and what every stage makes of it).

Container: 'HUBBUBW1', uint32 little-endian header length, JSON header {version, tensors: [{name, dtype, shape,
offset}], meta}, zero padding to 16 bytes, data (tensors at multiples of 16 from the start of the data, C order,
little-endian), SHA-256 of all before it. The same checkpoints give the same bytes. Batch norms are folded into the
layer before them (or after, for the pooled vector)."""
import argparse
import hashlib
import json
import os
import struct
import numpy as np
import torch
import torch.nn.functional as F
from scipy.signal import lfilter
import features as FT
from networks import CHANNELS, TRUNK, Embedder, Segmenter, pool_many

ORDER = {
    'features': (
        'frame t = samples [160t, 160t+400); p = |rfft512(window*samples)|^2 @ feat.mel; x = ln(p + 1e-6 e^level); f ='
        ' x - s - share (feat.prior + level), with level, running mean s and share of the prior of features.py. Stages'
        ' pad with 0.'
    ),
    'emb.trunk': (
        'input [1, 64 bands, T frames]; conv kernels [out, in, band, time], padding 1; stem stride (2,2) + relu; block'
        ' k: y = relu(c1(x)), y = c2(y), out = relu(y + (sc(x) or x)); stride (band, time) of c1 and sc: blk0 (1,1)'
        ' blk1 (2,2) blk2 (1,1) blk3 (2,1) blk4 (1,1); sc is 1x1 without padding; output [%d, 8 bands, ceil(T/4)]'
        ' flattened to channel*8+band = %d' % (CHANNELS, TRUNK)
    ),
    'emb.head': (
        'e = att2 . tanh(att1 . h_t); per channel weights w_t = m_t exp(e_t - max over m_t>0), divided by their sum; mu'
        ' = sum w h; sd = sqrt(max(sum w h^2 - mu^2, 1e-5)); y = fc . [mu, sd] + b; y / |y|; m_t = mean of the mask'
        ' over 40 ms'
    ),
    'seg': (
        'a = relu(c1 f) (conv1d over frames, 64->96, k5, stride 2, pad 2); c = c2 a (k5, stride 2, pad 2, no relu); p ='
        ' proj . trunk_t + b; x = relu(c + p); block k: x = x + B . relu(A x) with A = blk.a (k3, dilation 2^k, padding'
        ' 2^k), B = blk.b (1x1); GRU both ways over the 125 frames of the window (gates r, z, n as PyTorch), [forward,'
        ' backward]; y = l2 . relu(l1 . g); 14 = 2 frames of 20 ms x 7 classes; log-softmax over each 7'
    ),
    'classes': [[], [0], [1], [2], [0, 1], [0, 2], [1, 2]],
    'alignment': (
        '40 ms step j is centred on frame 4j; its outputs 2j, 2j+1 are [40j, 40j+20) and [40j+20, 40j+40) ms; n samples'
        ' give 1 + (n-400)//160 frames and ceil(frames/4) steps'
    ),
}


def write(path, tensors, version, meta):
    head, data, off = [], [], 0
    for name, t in tensors:
        t = np.ascontiguousarray(t)
        dtype = {'float16': 'f16', 'float32': 'f32'}[str(t.dtype)]
        pad = -off % 16
        data.append(b'\0' * pad)
        off += pad
        head.append(dict(name=name, dtype=dtype, shape=list(t.shape), offset=off))
        b = t.astype(t.dtype.newbyteorder('<')).tobytes()
        data.append(b)
        off += len(b)
    h = json.dumps(dict(version=version, tensors=head, meta=meta), sort_keys=True, separators=(',', ':')).encode()
    h += b' ' * (-(12 + len(h)) % 16)
    blob = b'HUBBUBW1' + struct.pack('<I', len(h)) + h + b''.join(data)
    blob += hashlib.sha256(blob).digest()
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + '.tmp', 'wb') as f:
        f.write(blob)
    os.replace(path + '.tmp', path)
    return len(blob)


def read(path):
    b = open(path, 'rb').read()
    assert b[:8] == b'HUBBUBW1' and hashlib.sha256(b[:-32]).digest() == b[-32:]
    n = struct.unpack('<I', b[8:12])[0]
    h = json.loads(b[12 : 12 + n])
    out = {}
    for t in h['tensors']:
        dt = np.dtype('<f2' if t['dtype'] == 'f16' else '<f4')
        a = 12 + n + t['offset']
        k = int(np.prod(t['shape'])) * dt.itemsize
        out[t['name']] = np.frombuffer(b[a : a + k], dt).reshape(t['shape'])
    return h, out


def affine(bn):
    g = (bn.weight.double() / (bn.running_var.double() + bn.eps).sqrt()).detach()
    return g, (bn.bias.double() - bn.running_mean.double() * g).detach()


def matrix(w):
    """the weights of a layer; of a convolution of one step without that step"""
    return w[:, :, 0] if w.ndim == 3 and w.shape[2] == 1 else w


def folded(layer, bn):
    """-> weights and bias of a layer and the batch norm after it"""
    g, b = affine(bn)
    w = layer.weight.detach().double()
    bias = b if layer.bias is None else b + g * layer.bias.detach().double()
    return matrix((w * g.view(-1, *[1] * (w.ndim - 1))).float().numpy()), bias.float().numpy()


def plain(layer):
    return matrix(layer.weight.detach().numpy()), layer.bias.detach().numpy()


def stored(tensors):
    """[(name, tensor or (weights, bias))] -> [(name, tensor)] as they are stored: large ones in half precision"""
    o = []
    for name, t in tensors:
        o += [(name + '.w', t[0]), (name + '.b', t[1])] if isinstance(t, tuple) else [(name, t)]
    half = lambda n, t: t.size >= 2048 and not n.startswith('feat.')
    return [(n, t.astype(np.float16 if half(n, t) else np.float32)) for n, t in o]


def tensors_of(emb, seg, prior):
    o = [('feat.window', FT.HANN), ('feat.mel', FT.MEL), ('feat.prior', np.asarray(prior, np.float32))]
    o += [('emb.stem', folded(emb.stem, emb.bn0))]
    for k, b in enumerate(emb.blocks):
        o += [('emb.blk%d.c1' % k, folded(b.c1, b.b1)), ('emb.blk%d.c2' % k, folded(b.c2, b.b2))]
        if b.sc is not None:
            o += [('emb.blk%d.sc' % k, folded(b.sc, b.bs))]
    o += [('emb.att1', plain(emb.att1)), ('emb.att2', plain(emb.att2))]
    gp, bp = affine(emb.bnp)
    go, bo = affine(emb.bno)
    w = emb.fc.weight.detach().double()
    o += [('emb.fc', ((go[:, None] * w * gp[None]).float().numpy(), (go * (w @ bp) + bo).float().numpy()))]
    o += [('seg.c1', folded(seg.c1, seg.n1)), ('seg.c2', folded(seg.c2, seg.n2))]
    o += [('seg.proj', folded(seg.proj, seg.np))]
    for k, b in enumerate(seg.blocks):
        o += [('seg.blk%d.a' % k, folded(b.a, b.n)), ('seg.blk%d.b' % k, plain(b.b))]
    for d, s in (('fw', ''), ('bw', '_reverse')):
        for n, p in (('wih', 'weight_ih_l0'), ('whh', 'weight_hh_l0'), ('bih', 'bias_ih_l0'), ('bhh', 'bias_hh_l0')):
            o.append(('seg.gru.%s.%s' % (d, n), getattr(seg.gru, p + s).detach().numpy()))
    return stored(o + [('seg.l1', plain(seg.l1)), ('seg.l2', plain(seg.l2))])


def run(w, f, keep):
    """The exported tensors applied to normalised frames f [T, 64], written out plainly: -> trunk [TRUNK, T'], stream
    [T', 96], all stages in keep"""
    t = {k: torch.from_numpy(v.astype(np.float32)) for k, v in w.items()}
    y = F.relu(F.conv2d(torch.from_numpy(f).t()[None, None], t['emb.stem.w'], t['emb.stem.b'], 2, 1))
    keep['emb.stem'] = y[0]
    for k, s in enumerate(((1, 1), (2, 2), (1, 1), (2, 1), (1, 1))):
        p = 'emb.blk%d.' % k
        z = F.conv2d(F.relu(F.conv2d(y, t[p + 'c1.w'], t[p + 'c1.b'], s, 1)), t[p + 'c2.w'], t[p + 'c2.b'], 1, 1)
        y = F.relu(z + (F.conv2d(y, t[p + 'sc.w'], t[p + 'sc.b'], s) if p + 'sc.w' in t else y))
        keep['emb.blk%d' % k] = y[0]
    h = y.flatten(1, 2)
    a = F.relu(F.conv1d(torch.from_numpy(f).t()[None], t['seg.c1.w'], t['seg.c1.b'], 2, 2))
    c = F.conv1d(a, t['seg.c2.w'], t['seg.c2.b'], 2, 2)
    p = F.conv1d(h, t['seg.proj.w'][..., None], t['seg.proj.b'])
    x = F.relu(c + p)
    keep.update({'seg.c1': a[0], 'seg.c2': c[0], 'seg.proj': p[0], 'seg.x0': x[0]})
    for k in range(5):
        q = 'seg.blk%d.' % k
        x = x + F.conv1d(
            F.relu(F.conv1d(x, t[q + 'a.w'], t[q + 'a.b'], 1, 2**k, 2**k)), t[q + 'b.w'][..., None], t[q + 'b.b']
        )
        keep['seg.blk%d' % k] = x[0]
    return h[0], x[0].t()


def head(w, h, m):
    t = {k: torch.from_numpy(v.astype(np.float32)) for k, v in w.items() if k.startswith('emb.')}
    m = torch.from_numpy(m)
    e = t['emb.att2.w'] @ torch.tanh(t['emb.att1.w'] @ h + t['emb.att1.b'][:, None]) + t['emb.att2.b'][:, None]
    e = e.masked_fill((m <= 0)[None], -1e4)
    a = torch.exp(e - e.amax(1, keepdim=True)) * m
    a = a / a.sum(1, keepdim=True)
    mu = (a * h).sum(1)
    sd = ((a * h * h).sum(1) - mu * mu).clamp_min(1e-5).sqrt()
    return F.normalize(t['emb.fc.w'] @ torch.cat([mu, sd]) + t['emb.fc.b'], dim=0)


def window(w, x):
    """stream [n, 96] -> GRU [n, 192], log posteriors [2n, 7]"""
    t = {k: torch.from_numpy(v.astype(np.float32)) for k, v in w.items() if k.startswith('seg.')}
    out = []
    for d in ('fw', 'bw'):
        p = 'seg.gru.%s.' % d
        s, ys = torch.zeros(96), []
        for i in range(len(x)) if d == 'fw' else range(len(x) - 1, -1, -1):
            u, v = t[p + 'wih'] @ x[i] + t[p + 'bih'], t[p + 'whh'] @ s + t[p + 'bhh']
            r, z = torch.sigmoid(u[:96] + v[:96]), torch.sigmoid(u[96:192] + v[96:192])
            s = (1 - z) * torch.tanh(u[192:] + r * v[192:]) + z * s
            ys.append(s)
        out.append(torch.stack(ys if d == 'fw' else ys[::-1]))
    g = torch.cat(out, 1)
    y = F.relu(g @ t['seg.l1.w'].t() + t['seg.l1.b']) @ t['seg.l2.w'].t() + t['seg.l2.b']
    return g, F.log_softmax(y.view(-1, 7), 1)


def test_signal(seconds=6):
    """two voice-like sounds (pulse trains through resonances) in turn, with an overlap and noise; half precision, so
    exact in a file"""
    n = seconds * FT.SR
    t = np.arange(n) / FT.SR
    r = np.random.RandomState(7)
    out = r.randn(n) * 4e-4
    for f0, formants, parts in (
        (115.0, (560, 1150, 2500), ((0.2, 2.1), (4.3, 5.7))),
        (205.0, (690, 1750, 2900), ((1.9, 4.0), (5.2, 6.0))),
    ):
        ph = np.cumsum(f0 * (1 + 0.12 * np.sin(2 * np.pi * 1.3 * t) + 0.02 * np.sin(2 * np.pi * 5 * t)) / FT.SR)
        x = (np.diff(np.floor(ph), prepend=0) > 0).astype(float) + r.randn(n) * 0.02
        for k, f in enumerate(formants):
            g, q = f * (1 + 0.25 * np.sin(2 * np.pi * (1.7 + k) * t[0])), 0.97 - 0.012 * k
            x = lfilter([1], [1, -2 * q * np.cos(2 * np.pi * g / FT.SR), q * q], x)
        env = np.zeros(n)
        for a, b in parts:
            k = (t >= a) & (t < b)
            env[k] = np.sin(np.pi * (t[k] - a) / (b - a)) ** 0.4 * (0.4 + 0.6 * np.sin(2 * np.pi * 3.7 * t[k]) ** 2)
        out += x / np.abs(x).max() * env * 0.3
    return out.astype(np.float16).astype(np.float32)


def parity(w, path, version):
    x = test_signal()
    f, lm, _ = FT.stream(FT.power(x), w['feat.prior'])
    keep = {}
    h, s = run(w, f, keep)
    g, lp = window(w, s[-125:])
    T = h.shape[1]
    masks = np.zeros((2, T), np.float32)
    masks[0, 5:53] = 1
    masks[0, 30] = 0.25
    masks[1, 55:95] = 1
    masks[1, 140:] = 0.5
    o = [
        ('signal', x.astype(np.float16)),
        ('logmel', lm.astype(np.float32)),
        ('frames', f),
        ('trunk', h.numpy()),
        ('seg.stream', s.numpy()),
        ('seg.gru', g.numpy()),
        ('seg.logp', lp.numpy()),
        ('masks', masks),
        ('embeddings', np.stack([head(w, h, m).numpy() for m in masks])),
    ]
    for k, v in keep.items():
        v = v.numpy()
        o += [(k + '.first', np.ascontiguousarray(v[..., :10])), (k + '.last', np.ascontiguousarray(v[..., -10:]))]
    return write(
        path,
        [(n, t if t.dtype == np.float16 else t.astype(np.float32)) for n, t in o],
        version,
        dict(
            note=(
                'stage.first / stage.last: first / last 10 time steps, time is the last axis; seg.stream [time, 96] is'
                ' after blk4; seg.gru and seg.logp: the last 125 steps; masks are weights of 40 ms steps'
            )
        ),
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--networks', required=True)
    ap.add_argument('--version', required=True)
    ap.add_argument('--weights', required=True)
    a = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    emb, seg = Embedder().eval(), Segmenter().eval()
    ck = torch.load(a.networks, map_location='cpu', weights_only=False)
    emb.load_state_dict(ck['emb'])
    seg.load_state_dict(ck['seg'])
    meta = dict(
        order=ORDER,
        gru_window=125,
        dilations=[1, 2, 4, 8, 16],
        trunk_context_frames=35,
        steps=ck['it'],
        minutes=round(ck['spent'] / 60, 1),
    )
    ts = tensors_of(emb, seg, ck['prior'])
    print('weights: %d bytes' % write(a.weights, ts, a.version, meta))
    _, w = read(a.weights)
    with torch.no_grad():  # the folded half-precision weights against the networks themselves
        f = FT.normalised(test_signal(), ck['prior'])
        h, s = run(w, f, {})
        h2 = emb.trunk(torch.from_numpy(f)[None])
        s2 = seg.stream(torch.from_numpy(f)[None], h2)[0]
        m = np.zeros(h.shape[1], np.float32)
        m[5:53] = 1
        e = emb.head(pool_many(emb, h2, torch.from_numpy(m)[None, None])[0])[0]
        lp, lp2 = window(w, s[-125:])[1], seg.window(s2[None, -125:])[0]
        print(
            'trunk %.5f (of %.2f)  stream %.5f (of %.2f)  probabilities %.5f  1 - cosine %.2e'
            % (
                (h - h2[0]).abs().max(),
                h2.abs().max(),
                (s - s2).abs().max(),
                s2.abs().max(),
                (lp.exp() - lp2.exp()).abs().max(),
                1 - head(w, h, m) @ e,
            )
        )


if __name__ == '__main__':
    main()
