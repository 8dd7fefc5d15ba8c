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
from networks import CHANNELS, TRUNK, WINDOW, Embedder, Segmenter, pool_many

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


GRU = [  # (name, parameter of PyTorch's)
    ('seg.gru.%s.%s' % (d, n), p + s)
    for d, s in (('fw', ''), ('bw', '_reverse'))
    for n, p in (('wih', 'weight_ih_l0'), ('whh', 'weight_hh_l0'), ('bih', 'bias_ih_l0'), ('bhh', 'bias_hh_l0'))
]


def layers(emb, seg):
    """-> [(name, layer, the batch norm after it or None)] in the order of the file"""
    o = [('emb.stem', emb.stem, emb.bn0)]
    for k, b in enumerate(emb.blocks):
        o += [('emb.blk%d.c1' % k, b.c1, b.b1), ('emb.blk%d.c2' % k, b.c2, b.b2)]
        if b.sc is not None:
            o.append(('emb.blk%d.sc' % k, b.sc, b.bs))
    o += [('emb.att1', emb.att1, None), ('emb.att2', emb.att2, None), ('emb.fc', emb.fc, emb.bno)]
    o += [('seg.c1', seg.c1, seg.n1), ('seg.c2', seg.c2, seg.n2), ('seg.proj', seg.proj, seg.np)]
    for k, b in enumerate(seg.blocks):
        o += [('seg.blk%d.a' % k, b.a, b.n), ('seg.blk%d.b' % k, b.b, None)]
    return o + [('seg.gru', seg.gru, None), ('seg.l1', seg.l1, None), ('seg.l2', seg.l2, None)]


def tensors_of(emb, seg, prior):
    o = [('feat.window', FT.HANN), ('feat.mel', FT.MEL), ('feat.prior', np.asarray(prior, np.float32))]
    for name, layer, bn in layers(emb, seg):
        if layer is seg.gru:
            o += [(n, getattr(layer, p).detach().numpy()) for n, p in GRU]
        elif layer is emb.fc:  # between two batch norms
            (gp, bp), (go, bo), w = affine(emb.bnp), affine(bn), layer.weight.detach().double()
            o.append((name, ((go[:, None] * w * gp[None]).float().numpy(), (go * (w @ bp) + bo).float().numpy())))
        else:
            o.append((name, folded(layer, bn) if bn else plain(layer)))
    return stored(o)


def networks_of(tensors):
    """exported tensors -> embedder, segmenter; the batch norms that were folded become y = x + b"""
    emb, seg = Embedder().eval(), Segmenter().eval()
    t = {k: torch.from_numpy(v.astype(np.float32)) for k, v in tensors.items()}

    def shift(bn, b):
        bn.weight.data.fill_(1.0)
        bn.bias.data.copy_(b)
        bn.running_mean.zero_()
        bn.running_var.fill_(1.0 - bn.eps)

    for name, layer, bn in layers(emb, seg):
        if layer is seg.gru:
            for n, p in GRU:
                getattr(layer, p).data.copy_(t[n])
            continue
        layer.weight.data.copy_(t[name + '.w'].view_as(layer.weight))
        if bn:
            shift(bn, t[name + '.b'])
        else:
            layer.bias.data.copy_(t[name + '.b'])
    shift(emb.bnp, torch.zeros(2 * TRUNK))
    return emb, seg


@torch.no_grad()
def stages(emb, seg, f, masks):
    """frames f [T, 64], masks [n, T'] -> {name: what the stage makes of them}, time is the last axis"""
    keep, hooks = {}, []

    def hook(module, name, activation=lambda y: y):
        hooks.append(module.register_forward_hook(lambda _, x, y: keep.update({name: activation(y)[0]})))

    hook(emb.bn0, 'emb.stem', F.relu)
    hook(seg.n1, 'seg.c1', F.relu)
    hook(seg.n2, 'seg.c2')
    hook(seg.np, 'seg.proj')
    for name, net in (('emb', emb), ('seg', seg)):
        for k, b in enumerate(net.blocks):
            hook(b, '%s.blk%d' % (name, k))
    hook(seg.gru, 'seg.gru', lambda y: y[0])
    x = torch.from_numpy(f)[None]
    h = emb.trunk(x)
    s = seg.stream(x, h)
    keep.update({'trunk': h[0], 'seg.stream': s[0], 'seg.logp': seg.window(s[:, -WINDOW:])[0]})
    keep['seg.x0'] = F.relu(keep['seg.c2'] + keep['seg.proj'])
    keep['embeddings'] = emb.head(pool_many(emb, h, torch.from_numpy(masks)[None])[0])
    for handle in hooks:
        handle.remove()
    return {k: v.numpy() for k, v in keep.items()}


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


def parity(tensors, path, version):
    x = test_signal()
    f, lm, _ = FT.stream(FT.power(x), tensors['feat.prior'])
    masks = np.zeros((2, -(-len(f) // 4)), np.float32)
    masks[0, 5:53] = 1
    masks[0, 30] = 0.25
    masks[1, 55:95] = 1
    masks[1, 140:] = 0.5
    o = [('signal', x.astype(np.float16)), ('logmel', lm), ('frames', f), ('masks', masks)]
    whole = ('trunk', 'seg.stream', 'seg.gru', 'seg.logp', 'embeddings')
    for k, v in stages(*networks_of(tensors), f, masks).items():
        o += [(k, v)] if k in whole else [(k + '.first', v[..., :10]), (k + '.last', v[..., -10:])]
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
    # the folded half-precision weights against the networks themselves
    f = FT.normalised(test_signal(), ck['prior'])
    mask = np.zeros((1, -(-len(f) // 4)), np.float32)
    mask[0, 5:53] = 1
    got, want = stages(*networks_of(read(a.weights)[1]), f, mask), stages(emb, seg, f, mask)
    off = lambda k: (np.abs(got[k] - want[k]).max(), np.abs(want[k]).max())
    probabilities = np.abs(np.exp(got['seg.logp']) - np.exp(want['seg.logp'])).max()
    print(
        'trunk %.5f (of %.2f)  stream %.5f (of %.2f)  probabilities %.5f  1 - cosine %.2e'
        % (*off('trunk'), *off('seg.stream'), probabilities, 1 - (got['embeddings'] * want['embeddings']).sum())
    )


if __name__ == '__main__':
    main()
