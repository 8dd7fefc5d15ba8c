"""Other noises, rooms, lines and processing for mel energies, on the device that trains: an example is rendered once
and varied in many ways.

Everything acts on power in mel bands [n, T, 64], n streams at once; which streams, and how much, is drawn anew for
each batch. What mel bands cannot show, the phase and the fine structure of codecs, is left to channels.py."""
import torch
import torch.nn.functional as F

BANDS = 64
SPEECH = 1e-3  # of the loudest frame's power: less is no speech


def db(x):
    return 10 ** (x / 10)


class Augment:
    """noises: mel energies of noises of mean power 1 [k, T', 64], on the device."""

    def __init__(self, noises):
        self.noises, self.device = noises, noises.device
        hertz = 700 * (
            10 ** ((torch.arange(1, BANDS + 1, device=self.device) * (2787.5 - 31.7) / (BANDS + 1) + 31.7) / 2595) - 1
        )
        self.widths = (hertz + 700) / (hertz + 700).mean()  # of the bands: white noise in mel energies
        self.bands = torch.arange(BANDS, device=self.device)[None, None].float()

    def uniform(self, n, low, high):
        return torch.rand(n, 1, 1, device=self.device) * (high - low) + low

    def chosen(self, n, share):
        return torch.rand(n, 1, 1, device=self.device) < share

    def curve(self, n, knots, deviation, size):
        """a smooth random curve in dB [n, size]"""
        return (
            F.interpolate(torch.randn(n, 1, knots, device=self.device), size=size, mode='linear', align_corners=True)[
                :, 0
            ]
            * deviation
        )

    def noise(self, n, frames):
        k = torch.randint(len(self.noises), (n,), device=self.device)
        at = torch.randint(self.noises.shape[1], (n, 1), device=self.device) + torch.arange(frames, device=self.device)
        return self.noises[k[:, None], at % self.noises.shape[1]]

    @torch.no_grad()
    def __call__(self, p):
        n, frames, _ = p.shape
        u, some, before = self.uniform, self.chosen, p
        power = p.mean(2, keepdim=True)
        speech = power > SPEECH * power.amax(1, keepdim=True)
        level = (power * speech).sum(1, keepdim=True) / speech.sum(1, keepdim=True).clamp_min(1)
        # a late tail of the room, at -14 to 0 dB of the sound
        t = torch.arange(80, device=self.device).float()
        tail = 10 ** (-6 * 0.01 * t / u(n, 0.2, 1.0)[:, 0]) * (t >= 2)
        tail = tail / tail.sum(1, keepdim=True) * db(u(n, -14, 0))[:, 0] * some(n, 0.3)[:, 0]
        tail[:, 0] += 1
        size = 1 << (frames + 80).bit_length()
        spectrum = torch.fft.rfft(p, size, dim=1) * torch.fft.rfft(tail, size, dim=1)[..., None]
        p = torch.where(tail[:, 5, None, None] > 0, torch.fft.irfft(spectrum, size, dim=1)[:, :frames].clamp_min(0), p)
        # noise
        p = p + self.noise(n, frames) * (level * db(-u(n, 5, 35)) * some(n, 0.5))
        # the line: colour, band edges, noise of its own
        p = p * db(self.curve(n, 8, 4.0, BANDS)[:, None] * some(n, 0.6))
        narrow, slope = some(n, 0.5), u(n, 4, 20)
        high = torch.where(narrow, u(n, 45, 51), u(n, 50, 66))
        low = torch.where(narrow, u(n, 0, 10), u(n, 0, 6))
        edges = slope * ((self.bands - high).clamp_min(0) + (low - self.bands).clamp_min(0))
        p = torch.where(some(n, 0.3), p * db(-edges.clamp_max(70)), p)
        p = p + level * self.widths * db(-u(n, 30, 70)) * some(n, 0.5) * (0.5 + torch.rand_like(p))
        # lossy coding: what its surroundings mask is coarser or gone
        around = F.max_pool2d(p[:, None], (3, 9), 1, (1, 4))[:, 0]
        p = torch.where((p < around * db(-u(n, 14, 32))) & some(n, 0.2), p * db(-u(n, 3, 30)), p)
        # noise suppression
        floor = torch.quantile(p[:, ::8], 0.15, dim=1, keepdim=True) * u(n, 1.5, 5)
        gain = torch.maximum((1 - floor / p.clamp_min(1e-12)).clamp_min(0), db(-u(n, 8, 28)) ** 0.5)
        p = torch.where(some(n, 0.15), p * gain**2, p)
        # gain that wanders, and gain that evens out
        p = p * db(self.curve(n, 10, 4.0, frames)[..., None] * some(n, 0.2))
        width = int(torch.randint(20, 300, ())) | 1
        slow = F.avg_pool1d(p.mean(2)[:, None], width, 1, width // 2, count_include_pad=False)[:, 0, :, None]
        even = (slow / level.clamp_min(1e-12) + 1e-6) ** -u(n, 0.2, 0.9)
        p = torch.where(some(n, 0.2), p * even.clamp_max(100), p)
        # packets that are lost
        lost = (
            F.interpolate((torch.rand(n, 1, frames // 4, device=self.device) < 0.04).float(), size=frames)[
                :, 0, :, None
            ]
            > 0
        )
        return torch.where(some(n, 0.25), before, torch.where(lost & some(n, 0.08), torch.zeros_like(p), p))

    @torch.no_grad()
    def bands_missing(self, f):
        """frames [n, T, 64], in some of which bands are 0 -> the same"""
        n = len(f)
        for share in (0.6, 0.3):
            low, width = self.uniform(n, 0, 58), self.uniform(n, 1, 7)
            f = f.masked_fill((self.bands >= low) & (self.bands < low + width) & self.chosen(n, share), 0)
        return f.masked_fill((self.bands >= self.uniform(n, 40, 60)) & self.chosen(n, 0.1), 0)
