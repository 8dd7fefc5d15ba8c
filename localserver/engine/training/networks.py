"""The two networks. Embedder: a 2-D residual trunk that sees every frame once, and a head that pools it under a mask.
Segmenter: who talks when inside 5 s, from the same frames and from the trunk's output at the same 40 ms step."""
import re
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
WINDOW = 125  # 40 ms frames of one 5 s window
CHANNELS = 96  # of the trunk's output
TRUNK = CHANNELS * 8  # channels x bands


def has_bfloat16():
    """whether the processor has instructions for bfloat16. Without them a step of the trunk takes 13 times as long as
    in float32 (AVX2), forward 28 times"""
    try:
        with open('/proc/cpuinfo') as f:
            return re.search(r'\b(avx512_bf16|amx_bf16|bf16)\b', f.read()) is not None
    except OSError:
        return False


@torch.no_grad()
def average_into(mean, net, decay):
    """moves the exponential moving average of a network's parameters and buffers one step"""
    for v, w in zip(mean.state_dict().values(), net.state_dict().values()):
        v.mul_(decay).add_(w, alpha=1 - decay) if v.dtype.is_floating_point else v.copy_(w)


class ResBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.c1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(o)
        self.c2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(o)
        self.sc = self.bs = None
        if i != o or stride != (1, 1):
            self.sc = nn.Conv2d(i, o, 1, stride, bias=False)
            self.bs = nn.BatchNorm2d(o)

    def forward(self, x):
        y = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
        return F.relu(y + (x if self.sc is None else self.bs(self.sc(x))))


class Embedder(nn.Module):
    """frames [B, T, 64] -> trunk [B, TRUNK, ceil(T/4)] (channel-major: channel * 8 + band) -> one vector of 128 for
    each mask. width: how many times as many channels as the network that ships has, for a teacher."""

    PLAN = [
        (16, 16, (1, 1)),
        (16, 32, (2, 2)),
        (32, 32, (1, 1)),
        (32, CHANNELS, (2, 1)),
        (CHANNELS, CHANNELS, (1, 1)),
    ]  # stride: (frequency, time)

    def __init__(self, dim=128, att=64, width=1):
        super().__init__()
        self.stem = nn.Conv2d(1, 16 * width, 3, 2, 1, bias=False)
        self.bn0 = nn.BatchNorm2d(16 * width)
        self.blocks = nn.ModuleList([ResBlock(i * width, o * width, s) for i, o, s in self.PLAN])
        self.att1 = nn.Conv1d(TRUNK * width, att * width, 1)
        self.att2 = nn.Conv1d(att * width, TRUNK * width, 1)
        self.bnp = nn.BatchNorm1d(2 * TRUNK * width)
        self.fc = nn.Linear(2 * TRUNK * width, dim, bias=False)
        self.bno = nn.BatchNorm1d(dim)
        self.bf16 = False

    def trunk(self, f):
        with torch.autocast(f.device.type, torch.bfloat16, enabled=self.bf16):
            y = F.relu(self.bn0(self.stem(f.transpose(1, 2).unsqueeze(1))))
            for b in self.blocks:
                y = b(y)
        return y.float().flatten(1, 2)

    def head(self, pooled):
        """pooled mean and deviation [n, 2 TRUNK] -> embeddings [n, 128] of length 1"""
        return F.normalize(self.bno(self.fc(self.bnp(pooled))))


def pool_many(emb, h, M):
    """Attentive mean and deviation of many masks of one conversation by matrix products: h [B, TRUNK, T], M [B, n, T]
    -> [B, n, 2 TRUNK]"""
    e = emb.att2(torch.tanh(emb.att1(h)))
    w = torch.exp(e - e.amax(2, keepdim=True).detach()).transpose(1, 2)
    x = h.transpose(1, 2)
    s0 = (M @ w).clamp_min(1e-6)
    mu = (M @ (w * x)) / s0
    return torch.cat([mu, ((M @ (w * x * x)) / s0 - mu * mu).clamp_min(1e-5).sqrt()], 2)


class DilatedBlock(nn.Module):
    def __init__(self, ch, d):
        super().__init__()
        self.a = nn.Conv1d(ch, ch, 3, padding=d, dilation=d, bias=False)
        self.n = nn.BatchNorm1d(ch)
        self.b = nn.Conv1d(ch, ch, 1)

    def forward(self, x):
        return x + self.b(F.relu(self.n(self.a(x))))


class Segmenter(nn.Module):
    """stream(): frames [B, T, 64] and the trunk [B, TRUNK, T'] -> [B, T', 96] over the whole stream;
    window(): [B, 125, 96] -> log posteriors [B, 250, 7] of 20 ms frames."""

    DILATIONS = (1, 2, 4, 8, 16)

    def __init__(self, ch=96, hid=96):
        super().__init__()
        self.c1 = nn.Conv1d(64, ch, 5, stride=2, padding=2, bias=False)
        self.n1 = nn.BatchNorm1d(ch)
        self.c2 = nn.Conv1d(ch, ch, 5, stride=2, padding=2, bias=False)
        self.n2 = nn.BatchNorm1d(ch)
        self.proj = nn.Conv1d(TRUNK, ch, 1, bias=False)
        self.np = nn.BatchNorm1d(ch)
        self.blocks = nn.ModuleList([DilatedBlock(ch, d) for d in self.DILATIONS])
        self.gru = nn.GRU(ch, hid, 1, bidirectional=True, batch_first=True)
        self.l1 = nn.Linear(2 * hid, 64)
        self.l2 = nn.Linear(64, 14)

    def stream(self, f, h):
        x = F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(f.transpose(1, 2)))))) + self.np(self.proj(h)))
        for b in self.blocks:
            x = b(x)
        return x.transpose(1, 2)

    def window(self, x):
        g, _ = self.gru(x)
        y = self.l2(F.relu(self.l1(g)))
        B, T, _ = y.shape
        return F.log_softmax(y.reshape(B, T * 2, 7), -1)
