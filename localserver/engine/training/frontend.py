"""The front end (features.py) for a batch of streams: on a GPU as one kernel, elsewhere stream by stream."""
import re
import numpy as np
import torch
import features as FT

# One warp for each stream, two bands for each thread. A stream that has gone on for long is read three times: for the
# level and the floor, for the mean, for the frames.
KERNEL = r'''
__device__ float over_bands(float v) {
    for (int k = 16; k; k >>= 1) v += __shfl_xor_sync(0xffffffff, v, k);
    return v / 64;
}
extern "C" __global__ void front_end(const float *p, const float *prior, const int *long_running, const float *counts,
                                     const float *offset, float *f, int frames) {
    const int i = blockIdx.x, b = threadIdx.x;
    p += (size_t)i * frames * 64; f += (size_t)i * frames * 64; offset += i * 64;
    float level = 0, floor = 0, w = 0, s0 = 0, s1 = 0, share = 1, count = PRIOR_COUNT;
    bool signal = false;
    const int last = long_running[i] ? 2 : 0;
    for (int pass = 0; pass <= last; pass++) {
        if (pass == 1) { s0 = s1 = share = w = 0; count = 1; }
        if (pass == 2) { s0 += offset[b]; s1 += offset[b + 32]; share = 0; count = counts[i]; }
        for (int t = 0; t < frames; t++) {
            const float p0 = p[t * 64 + b], p1 = p[t * 64 + b + 32], loud = over_bands(p0 + p1);
            const bool first = !signal && loud > 0;
            if (loud > 0) {
                const float e = logf(loud);
                if (first) level = e + START;
                if (share > START_SHARE && e + START + START_MARGIN < level) level = e + START;
                level += (e > level ? ATTACK : DECAY * w) * (e - level);
            }
            const float tiny = TINY * expf(level), x0 = logf(p0 + tiny), x1 = logf(p1 + tiny), e = over_bands(x0 + x1);
            if (first) { floor = e; signal = true; }
            if (signal) {
                if (!first) floor += e < floor ? FALL * (e - floor) : RISE;
                w = e < NO_SIGNAL + level ? 0 : e > floor + ABOVE ? 1 : LOW_WEIGHT;
                count = fminf(count + w, MAX_COUNT);
                const float a = w / count;
                share *= 1 - a; s0 += a * (x0 - s0); s1 += a * (x1 - s1);
            }
            if (pass == last) {
                f[t * 64 + b] = x0 - s0 - share * (prior[b] + level);
                f[t * 64 + b + 32] = x1 - s1 - share * (prior[b + 32] + level);
            }
        }
    }
}
'''
CONSTANTS = set(re.findall(r'\b[A-Z][A-Z_]+\b', KERNEL))  # of features.py, as the kernel names them
compiled = None


def frames(p, prior, long_running, counts, offset):
    """mel energies [n, T, 64]; of each stream: has it gone on for long (with sound like this)?, its count of frames
    of speech by then, what is added to its running mean [n, 64]; prior [64] -> frames relative to the running mean
    [n, T, 64]"""
    global compiled
    if p.is_cuda:
        import cupy

        if compiled is None:
            compiled = cupy.RawKernel(
                ''.join('#define %s %.9ff\n' % (c, getattr(FT, c)) for c in sorted(CONSTANTS)) + KERNEL, 'front_end'
            )
        p, f = p.contiguous(), torch.empty_like(p, memory_format=torch.contiguous_format)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            compiled(
                (len(p),),
                (32,),
                (
                    *(
                        cupy.asarray(v)
                        for v in (
                            p,
                            prior,
                            long_running.int().contiguous(),
                            counts.contiguous(),
                            offset.contiguous(),
                            f,
                        )
                    ),
                    np.int32(p.shape[1]),
                ),
            )
        return f
    out = []
    for x, long, n, o in zip(p.double().numpy(), long_running.tolist(), counts.tolist(), offset.numpy()):
        out.append(FT.stream(x, prior.numpy(), FT.long_running(x, n, o) if long else FT.State())[0])
    return torch.from_numpy(np.stack(out))
