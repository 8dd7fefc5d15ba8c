package device

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hubbub/capture/program"
)

// What programs of the machine list as devices.

// watchInterval is how often the sound server is asked while a device is open.
const watchInterval = 10 * time.Second

// watch asks the sound server, at once and then again and again, while ask returns true and until stop is
// called.
func watch(ask func(context.Context) (more bool)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for ask(ctx) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// pulseObject is an object of PulseAudio, or of PipeWire in its place: its fields, such as Name, its properties, such as
// application.process.id, and its number as "#".
type pulseObject map[string]string

// monitor reports whether a source is what an output plays.
func (o pulseObject) monitor() bool { return o["Monitor of Sink"] != "n/a" }

// pulse reads what pactl writes for people. Its JSON lacks names beyond ASCII (version 16).
func pulse(ctx context.Context, args ...string) (objects []pulseObject, err error) {
	text, err := output(ctx, "pactl", args...)
	for line := range strings.Lines(text) {
		if _, number, ok := strings.Cut(line, " #"); objects == nil || ok && line[0] != '\t' {
			objects = append(objects, pulseObject{"#": strings.TrimSpace(number)})
		}
		line, property := strings.CutPrefix(line, "\t\t")
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if property {
			key, value, found = strings.Cut(strings.TrimSpace(line), " = ")
			value = strings.Trim(value, `"`)
		}
		if found {
			objects[len(objects)-1][key] = program.Printable(value)
		}
	}
	return objects, err
}

// listPulse lists the sources as devices.
func listPulse(ctx context.Context) ([]Device, error) {
	sources, err := pulse(ctx, "list", "sources")
	if err != nil {
		return nil, err
	}
	server, err := pulse(ctx, "info")
	if len(server) == 0 {
		return nil, err
	}
	var list []Device
	for _, s := range sources {
		d := Device{Name: s["Description"], HostAPI: "parec", Default: s["Name"] == server[0]["Default Source"], id: s["Name"], monitor: s.monitor()}
		if d.monitor {
			d.Default = s["Monitor of Sink"] == server[0]["Default Sink"]
		}
		var format string
		_, _ = fmt.Sscanf(s["Sample Specification"], "%s %dch %fHz", &format, &d.Channels, &d.Rate)
		list = numbered(list, d)
	}
	return list, nil
}

// ErrPlaysOnly is the end of a device whose sound server has lost its last microphone.
var ErrPlaysOnly = errors.New("the sound server has no microphone any more")

// PlaysOnly reports whether the sound server has no microphone: its default source is what an
// output plays. ALSA's default device is then that, too.
func PlaysOnly(ctx context.Context) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	sources, err := pulse(ctx, "list", "sources")
	return err == nil && playOnly(sources)
}

func playOnly(sources []pulseObject) bool {
	return len(sources) > 0 && !slices.ContainsFunc(sources, func(s pulseObject) bool { return !s.monitor() })
}

// recordedSource is the name of the source that a process records; "" = unknown, or several.
func recordedSource(ctx context.Context, sources []pulseObject, pid int) (name string) {
	records, _ := pulse(ctx, "list", "source-outputs") // without it, there is none
	for _, r := range records {
		i := slices.IndexFunc(sources, func(s pulseObject) bool { return s["#"] == r["Source"] })
		if r["application.process.id"] != strconv.Itoa(pid) || i < 0 {
			continue
		}
		if name != "" {
			return ""
		}
		name = sources[i]["Description"]
	}
	return name
}

// property is text of pw-dump, which writes one that reads like a number or a boolean as such.
type property string

func (p *property) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*string)(p)) != nil {
		*p = property(raw)
	}
	return nil
}

// pipewireObject is an object of PipeWire: a device, or the names of the default ones.
type pipewireObject struct {
	ID   int `json:"id"`
	Info struct {
		Props struct {
			Class       string   `json:"media.class"`
			Name        property `json:"node.name"`
			Description property `json:"node.description"`
			// Position names the channels, as "FL,FR", "[ FL FR ]" or an array of JSON.
			Position json.RawMessage `json:"audio.position"`
		} `json:"props"`
	} `json:"info"`
	Metadata []struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	} `json:"metadata"`
}

// pipewireObjects reads a dump. What changes while it is made follows in an array of its own.
func pipewireObjects(dump string) (objects []pipewireObject, err error) {
	for arrays := json.NewDecoder(strings.NewReader(dump)); arrays.More(); {
		var some []pipewireObject
		if err := arrays.Decode(&some); err != nil {
			return nil, fmt.Errorf("pw-dump: %w", err)
		}
		for _, o := range some {
			if i := slices.IndexFunc(objects, func(old pipewireObject) bool { return old.ID == o.ID }); i >= 0 {
				objects[i] = o
			} else {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// listPipeWire lists PipeWire's sources, and its sinks as monitors.
func listPipeWire(ctx context.Context) ([]Device, error) {
	text, err := output(ctx, "pw-dump", "--no-colors")
	if err != nil {
		return nil, err
	}
	objects, err := pipewireObjects(text)
	if err != nil {
		return nil, err
	}
	var preferred, output property
	for _, o := range objects {
		for _, m := range o.Metadata {
			var value struct {
				Name property `json:"name"`
			}
			if strings.HasPrefix(m.Key, "default.audio.") && json.Unmarshal(m.Value, &value) == nil {
				switch m.Key {
				case "default.audio.source":
					preferred = value.Name
				case "default.audio.sink":
					output = value.Name
				}
			}
		}
	}
	var list []Device
	for _, o := range objects {
		p := o.Info.Props
		source := strings.HasPrefix(p.Class, "Audio/Source")
		if !source && p.Class != "Audio/Sink" {
			continue
		}
		channels := len(channelName.FindAll(p.Position, -1))
		if channels == 0 {
			channels = 2
		}
		list = numbered(list, Device{Name: program.Printable(string(cmp.Or(p.Description, p.Name))), HostAPI: "pw-record", Channels: channels, Rate: 48000,
			Default: source && p.Name == preferred || !source && p.Name == output, id: string(p.Name), monitor: !source})
	}
	return list, nil
}

var channelName = regexp.MustCompile(`\w+`)

var alsaCard = regexp.MustCompile(`^card \d+: (\S+) \[(.*?)\], device (\d+): .*?\[(.*?)\]`)

// listALSA lists sound cards. The default device, which may be a sound server, is
// not among them.
func listALSA(ctx context.Context) ([]Device, error) {
	text, err := output(ctx, "arecord", "-l")
	if err != nil {
		return nil, nil // arecord itself says so when it starts
	}
	var list []Device
	for line := range strings.Lines(text) {
		if m := alsaCard.FindStringSubmatch(line); m != nil {
			list = numbered(list, Device{Name: program.Printable(m[2] + ", " + m[4]), HostAPI: "arecord", Channels: 2, Rate: 48000,
				id: "plughw:CARD=" + m[1] + ",DEV=" + m[3]})
		}
	}
	return list, nil
}

var (
	avfoundationDevice = regexp.MustCompile(`^\[AVFoundation[^\]]*\] \[(\d+)\] (.*)$`)
	dshowDevice        = regexp.MustCompile(`^\[dshow[^\]]*\]\s+"(.*)" \(audio\)`)
)

// listFFmpeg lists the microphones of macOS and Windows.
func listFFmpeg(ctx context.Context) ([]Device, error) {
	format := ffmpegFormat[runtime.GOOS]
	input := map[string]string{"avfoundation": "", "dshow": "dummy"}
	if _, ok := input[format]; !ok {
		return nil, nil
	}
	// The list is on standard error, and the exit code is that of the missing input.
	_, text, _ := outputs(ctx, "ffmpeg", "-hide_banner", "-nostdin", "-f", format, "-list_devices", "true", "-i", input[format])
	return parseFFmpeg(format, text.String()), nil
}

func parseFFmpeg(format, text string) (list []Device) {
	audio := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.Contains(line, "devices:") {
			audio = strings.Contains(line, "audio devices:")
			continue
		}
		d := Device{HostAPI: "ffmpeg", Channels: 1, Rate: 48000}
		switch m := avfoundationDevice.FindStringSubmatch(line); {
		case format == "avfoundation" && audio && m != nil:
			d.Name, d.id = program.Printable(m[2]), m[1]
			list = numbered(list, d)
		case format == "dshow":
			if m := dshowDevice.FindStringSubmatch(line); m != nil {
				d.Name, d.id, d.Default = program.Printable(m[1]), m[1], len(list) == 0 // dshow has no default
				list = numbered(list, d)
			}
		}
	}
	return list
}

// numbered appends a device with the next number. Monitors have numbers of their
// own, because they are not listed with the microphones.
func numbered(list []Device, d Device) []Device {
	for _, other := range list {
		if other.monitor == d.monitor {
			d.Number++
		}
	}
	return append(list, d)
}
