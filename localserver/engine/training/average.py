"""Mean of the weights of two segmenter checkpoints of one run: average.py A.pt B.pt OUT.pt [share of B, default .5]"""
import sys
import torch

a, b = torch.load(sys.argv[1]), torch.load(sys.argv[2])
share = float(sys.argv[4]) if len(sys.argv) > 4 else .5
for k, v in a['ema'].items():
    if v.dtype.is_floating_point:
        b['ema'][k] = (1 - share) * v + share * b['ema'][k]
torch.save(b, sys.argv[3])
