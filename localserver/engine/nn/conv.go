package nn

// Plane is the memory layout of a frame of a 2-D layer: Bands rows of C channels,
// and a row of zeros on either side if padded.
type Plane struct {
	Bands, C int
	Padded   bool
}

// Size is the number of floats of a frame.
func (p Plane) Size() int { return (p.Bands + 2*p.pad()) * p.C }

func (p Plane) pad() int {
	if p.Padded {
		return 1
	}
	return 0
}

// Conv is a convolution with zero padding on a stream of frames: over frequency and time (NewConv2D), or
// over time alone (NewConv1D), on planes of one band.
type Conv struct {
	in, out    Plane
	freqStride int
	time       taps
	m          *Matrix
}

// NewConv2D packs PyTorch weights [out.C, in.C, size, size] (frequency before
// time) of a 3x3 or 1x1 convolution with strides 1 or 2. A 3x3 convolution needs a padded input plane.
func NewConv2D(in, out Plane, size, freqStride, timeStride int, w, bias []float32) *Conv {
	if size == 3 && !in.Padded || out.Bands != (in.Bands+freqStride-1)/freqStride {
		panic("nn: planes do not fit the convolution")
	}
	// One segment for each tap in time; in it the taps in frequency are adjacent.
	m := NewMatrix(size, size*in.C, out.C, bias, func(dt, k, o int) float32 {
		df, ci := k/in.C, k%in.C
		return w[((o*in.C+ci)*size+df)*size+dt]
	})
	return &Conv{in, out, freqStride, taps{size, timeStride, size / 2, 1}, m}
}

// NewConv1D packs PyTorch weights [out, in, kernel]; kernel is odd and the
// padding dilation*(kernel/2), so that stride 1 keeps the length. out must be a
// multiple of Lanes.
func NewConv1D(in, out, kernel, stride, dilation int, w, bias []float32) *Conv {
	m := NewMatrix(kernel, in, out, bias, func(tap, k, o int) float32 { return w[(o*in+k)*kernel+tap] })
	return &Conv{Plane{Bands: 1, C: in}, Plane{Bands: 1, C: out}, 1, taps{kernel, stride, dilation * (kernel / 2), dilation}, m}
}

// Compute computes the frames of dst that are new or not yet final. If add is given,
// its frames (of dst's shape) are added before the activation; add may be dst, filled
// by Compute of another layer in the same step.
func (c *Conv) Compute(src, dst, add *Track, relu bool) {
	dst.Extend(c.time.outputs(src.length))
	from := dst.final
	if from >= dst.length {
		return
	}
	edge := 0 // a 3x3 window begins one row above its centre; a 1x1 one skips the padding
	if c.time.kernel == 1 {
		edge = c.in.pad() * c.in.C
	}
	out := c.out.pad() * c.out.C
	r := Rows{Groups: dst.length - from, N: c.out.Bands, ReLU: relu,
		Src:      src.From(from*c.time.stride - c.time.pad)[edge:],
		SrcGroup: c.time.stride * src.size, SrcStride: c.freqStride * c.in.C, SegStride: c.time.dilation * src.size,
		Dst: dst.From(from)[out:], DstGroup: dst.size, DstStride: c.out.C}
	if add != nil {
		rows := (add.size - c.out.Bands*c.out.C) / 2 // add may be padded where dst is not
		r.Add, r.AddGroup, r.AddStride = add.From(from)[rows:], add.size, c.out.C
	}
	if r.N == 1 { // the kernels compute several rows of a group at once
		r.Groups, r.N, r.SrcStride, r.DstStride, r.AddStride = 1, r.Groups, r.SrcGroup, r.DstGroup, r.AddGroup
	}
	c.m.Apply(r)
}

// Step computes dst and marks those of its frames final that follow from final frames of src alone.
func (c *Conv) Step(src, dst, add *Track, relu bool) {
	c.Compute(src, dst, add, relu)
	dst.SetFinal(c.time.final(src.final))
}
