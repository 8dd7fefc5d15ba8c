"""RTTM files: who talks when in a recording."""
import collections


def read(path):
    """-> {recording: [(start, end, speaker)]} in the order of the file, in seconds"""
    turns = collections.defaultdict(list)
    with open(path) as f:
        for line in f:
            fields = line.split()
            if fields and fields[0] == 'SPEAKER':
                start, duration = float(fields[3]), float(fields[4])
                turns[fields[1]].append((start, start + duration, fields[7]))
    return turns


def write(path, recording, turns):
    """turns: [(start, end, speaker)]"""
    with open(path, 'w') as f:
        for start, end, speaker in sorted(turns):
            f.write('SPEAKER %s 1 %.3f %.3f <NA> <NA> %s <NA> <NA>\n' % (recording, start, end - start, speaker))
