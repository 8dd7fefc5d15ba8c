"""Synthetic voices as extra speakers of the training: espeak-ng in many variants, pitches and languages, festival in languages
other than English. The voices of the measured set `tts` (flite; festival kal and ked; espeak m3, m7, f2) are left out.

usage: synthesise_voices.py OUT      (needs espeak-ng, festival with the voices named below, numpy, soundfile)"""
import json
import os
import subprocess
import sys
import tempfile
import numpy as np
import soundfile as sf

WORDS = ('the house on the hill was sold last week and nobody knows who bought it|we should meet again on tuesday before the others arrive|'
         'i am not sure that this answers the question|can you send me the numbers when you have them|the train was late so i walked along the river|'
         'no that is the other one with the green door|most of the time it works but sometimes it does not|let us look at the second page of the report|'
         'she said that she would call back in the afternoon|it rained for three days and then the sun came out|what do you think about that idea|'
         'we tried it twice and both times it failed at the end|the budget is fine as long as we start in march|yes exactly that is what i meant|'
         'there are seven people on the list and two of them are new|please close the window it is getting cold in here|i had a long talk with him yesterday evening|'
         'first we measure then we decide and only then we build|he plays the violin and his sister plays the drums|nobody told me that the meeting was moved').split('|')
VARIANTS = ('m1 m2 m4 m5 m6 m8 f1 f3 f4 f5 Alex Andy Annie Denis Gene Jacky Lee Mario Michael adam anika antonio aunty belinda benjamin boris caleb david '
            'ed edward grandma grandpa gustave iven john linda marcelo max michel norbert pablo paul pedro quincy rob robert sandro shelby steph travis victor zac').split()
LANGUAGES = 'en-us en-gb de fr-fr es it pt-br nl pl sv tr fi'.split()
FESTIVAL = ('czech_dita czech_machac czech_ph hy_fi_mv_diphone suo_fi_lj_diphone hindi_NSK_diphone marathi_NSK_diphone telugu_NSK_diphone '
            'lp_diphone pc_diphone msu_ru_nsh_clunits upc_ca_ona_hts').split()


def spoken(command, text, path):
    try:
        subprocess.run(command, input=text.encode(), check=True, capture_output=True, timeout=60)
        x, sr = sf.read(path, dtype='float32')
    except (subprocess.SubprocessError, RuntimeError, OSError):
        return None
    if sr != 16000:
        n = int(len(x) * 16000 / sr)
        x = np.interp(np.arange(n) * sr / 16000., np.arange(len(x)), x).astype(np.float32)
    i = np.flatnonzero(np.abs(x) > .01 * (np.abs(x).max() + 1e-9))
    return x[i[0]:i[-1] + 1] if len(i) else None


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    r = np.random.default_rng(3)
    pool, index, pos = open(os.path.join(out, 'pool.i16'), 'wb'), [], 0
    plans = [('espeak-' + v, ['espeak-ng', '-v', '%s+%s' % (LANGUAGES[i % len(LANGUAGES)], v), '-p', str(int(r.integers(25, 75))), '-s', str(int(r.integers(130, 185)))])
             for i, v in enumerate(VARIANTS)] + [('festival-' + v, ['text2wave', '-eval', '(voice_%s)' % v]) for v in FESTIVAL]
    with tempfile.TemporaryDirectory() as d:
        for name, command in plans:
            wav, utts = os.path.join(d, 'x.wav'), []
            command = command + (['-w', wav] if name.startswith('espeak') else ['-o', wav])
            for k in r.permutation(len(WORDS))[:10]:
                x = spoken(command, WORDS[k], wav)
                if x is not None and len(x) > 12000:
                    b = np.clip(x / np.abs(x).max() * 16000, -32768, 32767).astype('<i2')
                    utts.append([pos, len(b)]); pool.write(b.tobytes()); pos += len(b)
            if len(utts) > 4:
                index.append(dict(corpus='synthetic', speaker=name, split='train', seconds=sum(n for _, n in utts) / 16000., utts=utts))
            print(name, len(utts), flush=True)
    json.dump(index, open(os.path.join(out, 'index.json'), 'w'))
    print('%d voices, %.1f minutes' % (len(index), pos / 16000. / 60))


if __name__ == '__main__':
    main()
