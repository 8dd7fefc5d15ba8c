package wire

// Figures explains the figures in the order in which the view has them.
var Figures = []struct{ Name, Text string }{
	{"sent, received", "messages and bytes of the session, audio included"},
	{"open", "time since this stream was opened"},
	{"lag, max", "from sending audio to its event; the largest so far"},
	{"last reply", "time since anything was received, pongs included"},
	{"pace", "seconds of audio sent per second, over 5 s"},
	{"behind, ahead", "audio sent, compared with the time since the first chunk"},
	{"queue", "chunks of 100 ms that wait to be sent"},
	{"retransmitted", "TCP segments sent more than once"},
	{"ping, no pong for", "round trip of a ping; age of the oldest without a pong"},
	{"fault", "errors, wrong events, refusals and lost streams so far"},
	{"unacknowledged", "bytes without a TCP acknowledgement; not sent: still here"},
	{"RTT", "round-trip time, as TCP measures it"},
	{"lost, unread", "segments that TCP counts as lost; bytes not read yet"},
	{"largest gap", "longest time between chunks, over 5 s; normally 100 ms"},
	{"longest write", "longest time to write a chunk to the system, over 5 s"},
	{"session", "time on the session's clock, which a resume continues"},
}
