"""Weights between those that a training started from and those that it ended with: (1 - share) start + share end, tensor by tensor.

What is learnt on simulated conversations and channels costs some of what the start had learnt on meetings; a point on the straight line between the two
is better than both ends on clean audio and on channels. Method: WiSE-FT, Wortsman et al., arXiv 2109.01903. The front end's tensors are those of the end."""
import argparse
import numpy as np
import torch
import export


def main():
    ap = argparse.ArgumentParser()
    for o in ('start', 'end', 'version', 'weights', 'parity'):
        ap.add_argument('--' + o, required=True)
    ap.add_argument('--share', type=float, required=True)
    a = ap.parse_args()
    torch.set_num_threads(1)
    (_, start), (head, end) = export.read(a.start), export.read(a.end)
    between = lambda n: end[n] if n.startswith('feat.') else ((1 - a.share) * start[n].astype(np.float64) + a.share * end[n].astype(np.float64)).astype(end[n].dtype)
    print('weights: %d bytes' % export.write(a.weights, [(t['name'], between(t['name'])) for t in head['tensors']], a.version, dict(head['meta'], share=a.share)))
    print('parity: %d bytes' % export.parity(export.read(a.weights)[1], a.parity, a.version))


if __name__ == '__main__':
    main()
