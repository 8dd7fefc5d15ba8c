package jobs

import (
	"runtime"
	"sync"
	"syscall"
)

// nicer is how much lower the priority of a job is than that of the process, as a
// nice value: a third of its share of a busy core.
const nicer = 5

// atLowPriority calls f in a thread of a lower priority and waits for it. The
// thread ends with f. While the system does not run it, it still holds a processor of
// Go's scheduler. So that streams do not have to wait for that one, GOMAXPROCS is
// raised by one until f returns.
func atLowPriority(f func()) {
	addProcessors(1)
	defer addProcessors(-1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: a thread's priority cannot be raised again
		thread := syscall.Gettid()
		if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, thread); err == nil { // 20 less the nice value
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, thread, 20-raw+nicer)
		}
		f()
	}()
	<-done
}

// processors guards changes of their number.
var processors sync.Mutex

func addProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}
