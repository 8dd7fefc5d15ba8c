package protocol

// Turn is one finished stretch of speech of one speaker, in seconds of the
// stream clock, End > Start.
type Turn struct {
	Speaker string  `json:"speaker"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
}

// Lane is everything known of one label.
type Lane struct {
	Speaker string
	// Turns are the finished turns, in order of time and without overlap.
	// The slice is shared between snapshots: read only.
	Turns []Turn
	// Open says that a turn began at OpenSince and has not ended yet.
	Open      bool
	OpenSince float64
	// Talk is the length of all finished turns, in seconds.
	Talk float64
}

// Counts says what became of a stream's messages.
type Counts struct {
	Events     int64 // messages in all
	Errors     int64 // of type error
	Unknown    int64 // of a type that this package does not know
	Malformed  int64 // could not be read
	Degenerate int64 // understood, but not a legal step: repeated, without a start, empty, out of order
}

// Snapshot is a Timeline at one moment; it never changes.
type Snapshot struct {
	// Lanes are in order of first speech.
	Lanes []Lane
	// Decided is the newest timestamp that any event has carried, in seconds.
	Decided float64
	Counts  Counts
}
