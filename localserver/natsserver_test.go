//go:build unix

package localserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
)

// natsServer is one real nats-server, a process of its own.
type natsServer struct {
	t       *testing.T
	program string
	config  string
	url     string
	cmd     *exec.Cmd
}

// natsProgram builds nats-server.
var natsProgram = sync.OnceValues(func() (path string, err error) {
	dir, err := os.MkdirTemp("", "nats-server")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "nats-server")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // like the programs of other tests, so that all is compiled once
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// natsCluster is newNATSCluster after its first election, which takes long on a busy machine.
func natsCluster(t *testing.T) []*natsServer {
	t.Helper()
	servers := newNATSCluster(t)
	conn := testkit.Must(nats.Connect(servers[0].url))(t)
	defer conn.Close()
	js := testkit.Must(jetstream.New(conn))(t)
	testkit.Eventually(t, "a leader", func() bool {
		_, err := js.AccountInfo(t.Context())
		return err == nil
	})
	return servers
}

// newNATSCluster starts three servers with three replicas of everything, synced on
// every write. Tests of a cluster mostly wait for elections and leases, so they run in
// parallel.
func newNATSCluster(t *testing.T) []*natsServer {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build nats-server with")
	}
	program := testkit.Must(natsProgram())(t)
	ports := freePorts(t, 6)
	var routes []string
	for _, p := range ports[3:] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	dir := t.TempDir()
	var servers []*natsServer
	for i := range 3 {
		n := &natsServer{t: t, program: program, config: filepath.Join(dir, fmt.Sprintf("n%d.conf", i)), url: fmt.Sprintf("nats://127.0.0.1:%d", ports[i])}
		config := fmt.Sprintf("server_name: n%d\nlisten: \"127.0.0.1:%d\"\n"+
			"jetstream { store_dir: %q, sync_interval: always }\n"+
			"cluster { name: test, listen: \"127.0.0.1:%d\", routes: [%s] }\n",
			i, ports[i], filepath.Join(dir, fmt.Sprint(i)), ports[3+i], strings.Join(routes, ", "))
		testkit.NoError(t, os.WriteFile(n.config, []byte(config), 0o600))
		n.start()
		servers = append(servers, n)
	}
	return servers
}

// freePorts returns free ports below the range of ephemeral ports, so that the
// port of a server that is down is not used for an outgoing connection.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // all at the end, so that they differ
		if ports = append(ports, l.Addr().(*net.TCPAddr).Port); len(ports) == n {
			return ports
		}
	}
	t.Fatal("no free ports")
	return nil
}

func (n *natsServer) start() {
	n.t.Helper()
	cmd := exec.Command(n.program, "-c", n.config)
	output := &logBuffer{}
	cmd.Stdout, cmd.Stderr = output, output
	testkit.Start(n.t, cmd)
	n.cmd = cmd
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("the last output of %s: %s", n.url, lastLines(output.String(), 12))
		}
	})
	testkit.Eventually(n.t, "nats-server", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "nats://"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// lastLines returns the end of a server's output, without the lines about
// routes: a server that is down would fill it with those.
func lastLines(output string, n int) string {
	lines := slices.DeleteFunc(strings.Split(output, "\n"), func(line string) bool {
		return line == "" || strings.Contains(strings.ToLower(line), "route")
	})
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (n *natsServer) kill()    { _ = n.cmd.Process.Kill(); _ = n.cmd.Wait() }
func (n *natsServer) pause()   { _ = n.cmd.Process.Signal(syscall.SIGSTOP) }
func (n *natsServer) unpause() { _ = n.cmd.Process.Signal(syscall.SIGCONT) }
