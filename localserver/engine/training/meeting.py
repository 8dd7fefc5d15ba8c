"""One simulated meeting: turns of annotated real meetings, people who read their utterances, one room, noise, one
microphone.

The shared sets sim-dev and sim-fluent are made in the same way."""
import collections
import os
import numpy as np
import soundfile as sf
from scipy.signal import butter, fftconvolve, sosfilt
import rttm
from acoustics import SR, load_audio
from voices import stretch

FADE = 240  # samples at both ends of a turn
JOINED = 0.3  # a pause of so many seconds is part of a turn
AWAY = (66, 85)  # seconds that one person does not talk


class NoTemplate(Exception):
    """no excerpt of a real meeting has so many people"""


def load_templates(path):
    """RTTM of many meetings -> [turns of a meeting], a turn is (start, end, person)"""
    return [turns for _, turns in sorted(rttm.read(path).items())]


def load_noises(speech):
    """the noises of the speech collection that are no room responses"""
    folder = os.path.join(speech, 'noise')
    return [
        load_audio(os.path.join(folder, f))
        for f in sorted(os.listdir(folder))
        if f.endswith('.opus') and 'rir_' not in f
    ]


def speech_of(x, gap=JOINED, down=30.0):
    """clean speech -> [(start, end)] in seconds of what is at most `down` dB below its loud level; pauses up to `gap`
    seconds are part of it"""
    n = len(x) // 160
    if n < 3:
        return [(0, len(x) / SR)] if len(x) else []
    level = 10 * np.log10((np.asarray(x[: n * 160]).reshape(n, 160) ** 2).mean(1) + 1e-12)
    spans = []
    for i in np.flatnonzero(level > np.percentile(level, 97) - down):
        a, b = i * 160 / SR, (i + 1) * 160 / SR
        if spans and a - spans[-1][1] <= gap:
            spans[-1][1] = b
        else:
            spans.append([a, b])
    return [(a, b) for a, b in spans if b - a >= 0.06]


def faded(x, n):
    x, n = x.copy(), min(n, len(x) // 4)
    if n:
        x[:n] *= np.linspace(0, 1, n)
        x[-n:] *= np.linspace(1, 0, n)
    return x


class Reader:
    """A person who reads on and on: the utterances in any order, pauses in them shortened."""

    ENOUGH = 150 * SR

    def __init__(self, person, rng):
        parts, total, utterances = [], 0, list(person['utts'])
        rng.shuffle(utterances)
        for start, n in utterances:
            x = np.asarray(person['pool'][start : start + n], np.float32) / 32768
            x = x / (np.sqrt((x**2).mean()) + 1e-6) * 0.06
            spans = speech_of(x, gap=0.12, down=32)
            for (a, b), then in zip(spans, spans[1:] + [None]):
                parts.append(faded(x[max(0, int((a - 0.03) * SR)) : min(len(x), int((b + 0.05) * SR))], 160))
                pause = min(0.25, then[0] - b) if then else rng.uniform(0.02, 0.12)
                parts.append(np.zeros(int(pause * SR), np.float32))
            total += n
            if total > self.ENOUGH:
                break
        self.x = np.concatenate(parts)
        self.at = rng.randint(len(self.x))

    def read(self, n):
        """about n samples from the next onset on: up to a quarter of a second more, to where it is quiet"""
        ahead = lambda start, count: np.take(self.x, np.arange(start, start + count), mode='wrap')
        onset = np.flatnonzero(np.abs(ahead(self.at, SR // 2)) > 0.01)
        start = self.at + (max(0, onset[0] - 320) if len(onset) else 0)
        x = ahead(start, n + SR // 4)
        power = (x[n - n % 160 :][: SR // 4 // 160 * 160].reshape(-1, 160) ** 2).mean(1)
        n += int(np.argmin(power)) * 160 if len(power) else 0
        self.at = (start + n) % len(self.x)
        return faded(x[:n], FADE)


class VoiceReader(Reader):
    """A person who reads in the voice that the example gives to its people."""

    def __init__(self, person, rng):
        super().__init__(person, rng)
        if person['speed'] != 1.0:
            self.x = stretch(self.x.astype(np.float32), person['speed'])
        if person['tract'] is not None:
            self.x = person['tract'].speak(self.x)
        self.at = rng.randint(len(self.x))


def room_impulse_response(rng, t60, distance):
    """room impulse response: direct sound and a tail, about 8 dB below it at 0.5 m and 4 dB above it at 2 m"""
    t = np.arange(int(SR * min(0.8, t60 * 1.1) + SR * 0.02)) / SR
    h = rng.randn(len(t)) * 10 ** (-3 * t / t60)
    h[: int(SR * rng.uniform(0.002, 0.006))] = 0
    h = sosfilt(butter(1, [150, 5500], 'band', fs=SR, output='sos'), h)
    h *= 1 / np.sqrt((h**2).sum() * 10 ** ((8 - 20 * np.log10(distance / 0.5)) / 10))
    h[0] = 1.0
    return h / np.sqrt((h**2).sum())


def background(rng, n, noises):
    """a recorded noise, or coloured noise, some with mains hum"""
    kind = rng.randint(4)
    if kind == 0 and noises:
        x = noises[rng.randint(len(noises))]
        return np.tile(x, n // len(x) + 1)[:n]
    spectrum = np.fft.rfft(rng.randn(n))
    x = np.fft.irfft(spectrum * np.maximum(np.fft.rfftfreq(n, 1 / SR), 40) ** -rng.uniform(0.3, 1.1), n)
    x, t = x / x.std(), np.arange(n) / SR
    if kind == 1:
        x += 0.3 * np.sin(2 * np.pi * 100 * t) + 0.15 * np.sin(2 * np.pi * 150 * t)
    return x


def spoken(turns):
    """-> seconds of each person"""
    c = collections.Counter()
    for a, b, p in turns:
        c[p] += b - a
    return c


def excerpt(templates, rng, seconds, k):
    """an excerpt of a real meeting and its k most talkative people -> [(start, end, person 0..k-1)]"""
    for _ in range(500):
        turns = templates[rng.randint(len(templates))]
        start = rng.uniform(0, max(1, max(b for _, b, _ in turns) - seconds))
        turns = [
            (max(0, a - start), min(seconds, b - start), p) for a, b, p in turns if b > start and a < start + seconds
        ]
        people = [p for p, total in spoken(turns).most_common(k) if total >= 6]
        if len(people) < k:
            continue
        turns = [(a, b, people.index(p)) for a, b, p in turns if p in people and b - a > 0.15]
        if sum(b - a for a, b, _ in turns) >= 0.45 * seconds:
            return turns
    raise NoTemplate


def in_parts(templates, rng, k, seconds):
    """More than four people talk in three parts of at most four; somebody stays in each, and people of the first come
    back in the last."""
    order, half, turns, start = list(rng.permutation(k)), (k + 1) // 2, [], 0
    for people, share in (
        (order[:half][:4], 0.38),
        ((order[half:] + order[:1])[:4], 0.38),
        ((order[:2] + order[-2:])[:4], 0.24),
    ):
        n = share * seconds
        count = len(people) if n > 40 else min(3, len(people))
        turns += [(a + start, b + start, people[p]) for a, b, p in excerpt(templates, rng, n, count)]
        start += n
    return sorted(turns)


def with_an_absence(rng, turns, seconds):
    """one person does not talk for more than a minute, but before and after"""
    order = [p for p, _ in spoken(turns).most_common()]
    absent = order[rng.randint(1, len(order))]
    a = rng.uniform(0.25, 0.35) * seconds
    b = a + rng.uniform(*AWAY)
    turns = [t for t in turns if not (t[2] == absent and t[1] > a and t[0] < b)]
    if spoken(t for t in turns if t[1] <= a)[absent] < 3:
        turns.append((a - 4.5, a - 1, absent))
    if spoken(t for t in turns if t[0] >= b)[absent] < 3:
        turns.append((min(b + 1, seconds - 5), min(b + 5, seconds - 1), absent))
    return sorted(turns)


def one_after_the_other(rng, turns, seconds):
    """the same turns with small gaps and hardly any overlap; those that one person continues are mostly joined"""
    out, t = [], 0.5
    for a, b, p in turns:
        n = b - a
        if n < 0.5 and rng.rand() < 0.6:
            continue
        if out and out[-1][2] == p and rng.rand() < 0.7:
            out[-1][1] += n
            t = out[-1][1]
            continue
        t += max(0.05, rng.gamma(2, 0.2))
        if rng.rand() < 0.08:
            t -= 0.35
        out.append([max(0, t), t + n, p])
        t += n
        if t > seconds:
            break
    return [tuple(x) for x in out if x[1] < seconds + 3]


def plan(templates, rng, k, seconds, style):
    """turns of k people -> [(start, end, person 0..k-1)]"""
    turns = (
        with_an_absence(rng, sorted(excerpt(templates, rng, seconds, k)), seconds)
        if k <= 4
        else in_parts(templates, rng, k, seconds)
    )
    return one_after_the_other(rng, turns, seconds) if style == 'interview' else turns


def joined(spans):
    """[(start, end)] -> the same, pauses up to JOINED closed"""
    out = []
    for a, b in sorted(spans):
        if out and a - out[-1][1] <= JOINED:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def name_of(person):
    return '%s-%s' % (person['corpus'], person['speaker'])


def write(out, name, x, turns):
    """OUT/NAME.wav, .rttm and .uem"""
    os.makedirs(out, exist_ok=True)
    path, seconds = os.path.join(out, name), len(x) / SR
    sf.write(path + '.wav', (x * 32767).astype(np.int16), SR, subtype='PCM_16')
    turns = [(max(0, a), min(seconds, b), speaker) for a, b, speaker in turns]
    rttm.write(path + '.rttm', name, [(a, b, speaker) for a, b, speaker in turns if b - a > 1e-3])
    with open(path + '.uem', 'w') as f:
        f.write('%s 1 %.3f %.3f\n' % (name, 0, seconds))


def simulated(people, noises, rng, turns, style, reader=Reader):
    """-> samples at 16 kHz, {person's number: [(start, end) in s]}, and a line about the room. turns: (start, end,
    person)"""
    k = len(people)
    n = int((max(b for _, b, _ in turns) + 1.5) * SR)
    t60, distance = rng.uniform(0.15, 0.6), rng.uniform(0.3, 2.2, k) * (0.6 if style == 'interview' else 1)
    x, level, spans, readers, room = (
        np.zeros(n + SR),
        10 ** (rng.uniform(-4, 3, k) / 20),
        collections.defaultdict(list),
        {},
        {},
    )
    for a, b, p in sorted(turns):
        if p not in readers:
            readers[p], room[p] = reader(people[p], rng), room_impulse_response(rng, t60, distance[p])
        speech = readers[p].read(int((b - a) * SR)) * level[p]
        i, y = int(a * SR), fftconvolve(speech, room[p])
        y = y[: len(x) - i]
        x[i : i + len(y)] += y
        spans[p] += [(a + s, a + e) for s, e in speech_of(speech)]
    x = x[:n]
    truth = {p: joined(spans[p]) for p in readers}
    active = np.zeros(n, bool)
    for s in truth.values():
        for a, b in s:
            active[int(a * SR) : int(b * SR)] = True
    noise, snr = background(rng, n, noises), rng.uniform(10, 30)
    x = x + noise * (np.sqrt((x[active] ** 2).mean() / ((noise**2).mean() + 1e-12)) * 10 ** (-snr / 20))
    low, high = rng.choice([60, 100, 180]), rng.choice([3800, 6500, 7500, 7800])
    x = sosfilt(butter(2, [low, high], 'band', fs=SR, output='sos'), x)
    speech = sum(b - a for s in truth.values() for a, b in s)
    about = 'k=%d %.0fs speech %.2f overlap %.2f T60 %.2f SNR %.0f %s' % (
        len(readers),
        n / SR,
        speech / (n / SR),
        (speech - active.sum() / SR) / speech,
        t60,
        snr,
        style,
    )
    return x * (rng.uniform(0.15, 0.6) / np.abs(x).max()), truth, about


def make(out, name, people, templates, noises, rng, seconds, style, reader=Reader):
    """Writes the meeting. people: each has the samples that its utterances are in (`pool`, int16); style: 'interview'
    or 'meeting'. Raises NoTemplate."""
    x, truth, about = simulated(people, noises, rng, plan(templates, rng, len(people), seconds, style), style, reader)
    write(out, name, x, [(a, b, name_of(people[p])) for p, spans in truth.items() for a, b in spans])
    print(name, about, ','.join(sorted({p['corpus'] for p in people})), flush=True)
