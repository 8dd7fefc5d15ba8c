package capturetest

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// virtualMicrophone is a configuration of PipeWire: the microphone records what is played to the stereo sink.
const virtualMicrophone = `context.modules = [ { name = libpipewire-module-loopback args = {
  node.description = "Virtual Microphone"
  capture.props = { node.name = mic media.class = Audio/Sink audio.position = [ FL FR ] }
  playback.props = { node.name = virtmic media.class = Audio/Source audio.position = [ MONO ] }
} } ]
`

// PipeWire starts a PipeWire with its session manager WirePlumber in a temporary folder; the end of the test kills
// them. They see no sound card, and do not reach the machine's D-Bus.
func PipeWire(t *testing.T) *Server {
	t.Helper()
	Need(t, "dbus-run-session", "pipewire", "wireplumber", "pw-record", "pw-play", "pw-dump", "pw-cli")
	dir := folder(t, map[string]string{"pipewire/pipewire.conf.d/microphone.conf": virtualMicrophone, "alsa.conf": ""})
	s := &Server{Vars: []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
		"ALSA_CONFIG_PATH=" + filepath.Join(dir, "alsa.conf"), "DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + filepath.Join(dir, "none")}}
	// The group of the processes has the id of their parent, and must not outlive it.
	s.Cmd = s.Command("dbus-run-session", "--", "sh", "-c", `(while kill -0 $PPID; do sleep 1; done; kill -KILL -$PPID) 2>/dev/null &
pipewire &
while ! pw-cli info 0 >/dev/null 2>&1; do sleep 0.1; done
wireplumber`)
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.start(t, func() { _ = syscall.Kill(-s.Process.Pid, syscall.SIGKILL) }, func() bool {
		out, err := s.Command("pw-dump", "--no-colors").Output()
		// The session manager has chosen the default devices.
		return err == nil && strings.Contains(string(out), `"default.audio.source"`) && strings.Contains(string(out), `"default.audio.sink"`)
	})
	return s
}
