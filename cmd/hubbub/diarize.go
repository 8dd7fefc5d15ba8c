package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/secondpass"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/localserver/engine/offline"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
	"hubbub/tui"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// diarizeFlags are the flags of `hubbub diarize`.
type diarizeFlags struct {
	output                             choice
	speakers, minSpeakers, maxSpeakers count
	exclusive                          bool
	channels                           channelsFlag
	out                                string
	force                              bool
	voicesFlags
	wordsFlags
}

type diarizeFile struct{ output, extension string }

// diarizeFiles are the file extensions of the outputs, in the order of the help.
var diarizeFiles = []diarizeFile{
	{"rttm", ".rttm"}, {"json", ".ndjson"}, {"lines", ".txt"}, {"csv", ".csv"}, {"vtt", ".vtt"}, {"audacity", ".labels.txt"}, {"html", ".html"},
}

func newDiarize(a *App) *cobra.Command {
	var outputs []string
	for _, f := range diarizeFiles {
		outputs = append(outputs, f.output)
	}
	people := newCount(0, offline.MaxSpeakers)
	f := &diarizeFlags{output: choice{"", outputs}, speakers: people, minSpeakers: people, maxSpeakers: people}
	cmd := &cobra.Command{
		Use:   "diarize FILE...",
		Short: "Find who talks in recorded files, with the context of the whole recording",
		Long: `Find who talks when in WAV, FLAC or MP3 files, and other formats if ffmpeg is
installed. The whole recording is known, so the result is better than that of
'hubbub live'. No service is used, and audio leaves the machine only with --words
URL. Several files are processed at the same time, one on each core. Ctrl-C keeps
the files that are finished.`,
		Example: `  hubbub diarize meeting.wav
  hubbub diarize meeting.wav --speakers 3 --output rttm > meeting.rttm
  hubbub diarize *.mp3 --out turns --output vtt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return usage.Error("hubbub diarize needs at least one file", "Usage: "+cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a.noEffectAlone(cmd, f.voicesFlags, f.wordsFlags)
			files := expand(args, runtime.GOOS)
			if f.output.value == "" {
				f.output.value = "lines"
				if f.out != "" || len(files) > 1 {
					f.output.value = "rttm"
				}
			}
			if f.output.value == "rttm" || f.output.value == "audacity" {
				a.noEffect(cmd, "with --output "+f.output.value+", which has no words", "words")
				f.words = ""
			}
			return a.diarize(cmd.Context(), files, f)
		},
	}
	flags := cmd.Flags()
	f.output.add(cmd, "output", "o", "output `FORMAT`: "+session.OneOf(outputs)+" (default: lines; with --out or several files, rttm)")
	flags.Var(&f.speakers, "speakers", "`NUMBER` of speakers, 1 to 20, if it is known")
	flags.Var(&f.minSpeakers, "min-speakers", "minimum `NUMBER` of speakers, 1 to 20")
	flags.Var(&f.maxSpeakers, "max-speakers", "maximum `NUMBER` of speakers, 1 to 20")
	addChannels(cmd, &f.channels, "or several if a number of speakers is given")
	flags.BoolVar(&f.exclusive, "exclusive", false, "only the most likely speaker where several talk at once")
	f.voicesFlags.add(flags)
	f.wordsFlags.add(flags, "add what is said, from your `RECOGNISER`: "+recogniserHelp)
	flags.Var((*nonEmpty)(&f.out), "out", "write one file for each input into the folder `DIR`")
	flags.BoolVar(&f.force, "force", false, "replace existing files")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// diarizer diarizes several files and writes their results.
type diarizer struct {
	*App
	flags    *diarizeFlags
	options  offline.Options
	progress secondpass.Progress
	words    words.Recogniser // nil = none
	people   []voiceprint.Person

	mu      sync.Mutex // guards what follows, and the outputs
	results [][]byte   // for standard output; nil = not finished
	written int        // results that are written
	failed  int        // files
}

func (a *App) diarize(ctx context.Context, files []string, f *diarizeFlags) error {
	d := &diarizer{App: a, flags: f, results: make([][]byte, len(files)),
		options: offline.Options{Speakers: f.speakers.value, MinSpeakers: f.minSpeakers.value, MaxSpeakers: f.maxSpeakers.value}}
	if err := d.options.Validate(); err != nil {
		return usage.Error(err.Error(), "Give --speakers, or a minimum that is not above the maximum.")
	}
	var err error
	if d.words, err = f.recogniser(words.RecordingTimeout); err != nil {
		return err
	}
	if d.words != nil {
		d.words = words.Limit(&watched{d.words, sync.OnceFunc(d.slow)}, 2) // of all files together
	}
	if f.voices {
		list, err := a.currentVoices()
		if err != nil {
			return err
		}
		d.people = voices.People(list)
	}
	paths, err := d.paths(files)
	if err != nil {
		return err
	}
	if session.IsTerminal(a.Stderr) {
		canvas.AskBackground() // for the summary; asked later, what is typed meanwhile would be lost
	}
	stop := d.progress.Show(len(files), a.progress)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		group.Go(func() error {
			if err := d.file(ctx, i, file, paths[i]); err != nil {
				return d.fail(ctx, i, err)
			}
			return nil
		})
	}
	err = group.Wait()
	stop()
	for ; err != nil && d.written < len(files); d.written++ { // interrupted: what is finished waits for other files
		if _, e := a.Stdout.Write(d.results[d.written]); e != nil {
			return e
		}
	}
	switch {
	case err != nil || d.failed == 0:
	case d.failed == len(files):
		err = hint.Errorf("The lines above say why.", "all files failed")
	default:
		err = hint.Errorf("The results of the others are complete.", "%d of %d files failed", d.failed, len(files))
	}
	return err
}

// slowWords is how long a recogniser may take for a turn before a notice says so.
const slowWords = 10 * time.Second

// watched is a recogniser that calls slow when a response takes long.
type watched struct {
	words.Recogniser
	slow func()
}

func (w *watched) Recognise(ctx context.Context, wav []byte, timed bool) (string, []words.Word, error) {
	defer time.AfterFunc(slowWords, w.slow).Stop()
	return w.Recogniser.Recognise(ctx, wav, timed)
}

func (d *diarizer) slow() {
	d.notice("waiting for the recogniser, which has not responded for %.0f s\nAfter three failures in a row the other turns have no words.", slowWords.Seconds())
}

// fail reports the failure of one file of several. The others go on, unless the
// output is closed or the program is interrupted.
func (d *diarizer) fail(ctx context.Context, i int, err error) error {
	if len(d.results) == 1 || ctx.Err() != nil || d.stdoutClosed(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed++
	d.notice("%v\n%s", err, whatToDo(err))
	d.results[i] = []byte{}
	return d.flush()
}

// paths are the files to write, "" for standard output. Existing files are
// replaced only if the user agrees.
func (d *diarizer) paths(files []string) ([]string, error) {
	names, err := d.names(files)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	if d.flags.out == "" {
		if len(files) > 1 && d.flags.output.value != "rttm" {
			return nil, usage.Error("standard output takes several files only as rttm, which names them", "Give a folder with --out, or choose --output rttm.")
		}
		return paths, nil
	}
	format := slices.IndexFunc(diarizeFiles, func(f diarizeFile) bool { return f.output == d.flags.output.value })
	for i, name := range names {
		paths[i] = filepath.Join(d.flags.out, name+diarizeFiles[format].extension)
	}
	if !d.flags.force {
		if err := d.mayReplace(paths, "--out"); err != nil {
			return nil, err
		}
	}
	err = os.MkdirAll(d.flags.out, 0o777)
	if err == nil { // that no file can be written is better known before hours of audio are processed
		err = atomicfile.Check(d.flags.out)
	}
	if err != nil {
		return nil, hint.Add(err, "Choose another folder with --out.")
	}
	return paths, nil
}

// names returns the names of the results, and rejects files that cannot be diarized together.
func (d *diarizer) names(files []string) ([]string, error) {
	names := make([]string, len(files))
	nameOf := capture.FileName
	if d.flags.out == "" { // rttm, which names them
		nameOf = capture.RTTMName
	}
	for i, file := range files {
		if file == "-" {
			return nil, usage.Error("hubbub diarize takes files, not -", "Write the audio into a file first, or, on Linux and macOS, name /dev/stdin.")
		}
		if capture.IsDevice(file) {
			return nil, usage.Error("hubbub diarize takes files, not "+file, "Record first, with 'hubbub live --record DIR', then diarize DIR/audio.wav.")
		}
		if st, err := os.Stat(file); err == nil && d.words != nil && !st.IsDir() && !st.Mode().IsRegular() {
			return nil, usage.Error("--words reads its input twice, and "+file+" is not a regular file", "Write it into a file first.")
		}
		names[i] = nameOf(file)
		if first := slices.IndexFunc(names[:i], func(name string) bool { return sameName(name, names[i], runtime.GOOS) }); first >= 0 {
			return nil, usage.Error(fmt.Sprintf("the results of %s and %s have the same name, %s", files[first], file, names[i]), "Diarize them one after the other, into different folders or files.")
		}
	}
	return names, nil
}

// expand gives the files that match a pattern such as *.flac, which no shell of Windows does.
func expand(args []string, system string) (files []string) {
	for _, arg := range args {
		found, err := filepath.Glob(arg)
		if system != "windows" || !strings.ContainsAny(arg, "*?") || err != nil || len(found) == 0 {
			found = []string{arg}
		}
		files = append(files, found...)
	}
	return files
}

// sameName reports whether two files of one folder cannot have these names: Windows and macOS take
// capital letters for the small ones.
func sameName(a, b, system string) bool {
	return a == b || system != "linux" && strings.EqualFold(a, b)
}

func (d *diarizer) file(ctx context.Context, i int, file, path string) error {
	result, err := secondpass.Run(ctx, file, d.flags.channels.value, d.options, &d.progress)
	if err != nil {
		return err
	}
	result.Recognise(d.people, voiceprint.Matching{Threshold: float64(d.flags.threshold.value) / 100})
	c := recording.Content{Info: export.Info{Name: result.Info.Base, Title: filepath.Base(file), Length: result.Length.Seconds()}, Turns: result.Turns}
	if d.flags.exclusive {
		c.Turns = result.Exclusive
	}
	if export.AudioType(file) != "" {
		c.Audio = file
	}
	notices := append([]string{result.Info.Notice}, result.Notices...)
	if d.words != nil {
		notice, err := secondpass.Transcribe(ctx, file, d.flags.channels.value, d.words, c.Turns, result.Tracks, &d.progress)
		if err != nil {
			return err
		}
		notices = append(notices, notice)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range notices {
		if n != "" {
			d.notice("%s: %s", file, n)
		}
	}
	switch want := max(d.options.Speakers, d.options.MinSpeakers) * result.Info.Tracks; {
	case result.Speakers == 0:
		d.notice("%s: no speech was found", file)
	case result.Speakers < want:
		d.notice("%s: only %d of %d speakers could be told apart", file, result.Speakers, want)
	}
	if err := d.write(i, path, c); err != nil {
		return err
	}
	return d.summary(file, c)
}

// write writes a result: into its file, or to standard output once all earlier
// files are finished.
func (d *diarizer) write(i int, path string, c recording.Content) error {
	var b bytes.Buffer
	if err := d.render(&b, c, filepath.Dir(path)); err != nil {
		return err
	}
	if path != "" {
		if err := atomicfile.WriteFile(path, b.Bytes(), 0o666); err != nil {
			return err
		}
		var err error
		d.above(func() { _, err = fmt.Fprintln(d.Stdout, path) })
		return err
	}
	d.results[i] = append([]byte{}, b.Bytes()...) // not nil
	return d.flush()
}

// flush writes the results that wait for no other file to standard output.
func (d *diarizer) flush() error {
	for d.flags.out == "" && d.written < len(d.results) && d.results[d.written] != nil {
		var err error
		if d.above(func() { _, err = d.Stdout.Write(d.results[d.written]) }); err != nil {
			return err
		}
		d.written++
	}
	return nil
}

// render writes the turns in the chosen format. lines, json and rttm are those of
// `hubbub live`.
func (d *diarizer) render(w io.Writer, c recording.Content, dir string) error {
	switch output := d.flags.output.value; output {
	case "lines", "json", "rttm":
		p := plain.NewPrinter(w, plain.Format(output), c.Info.Name)
		for _, t := range c.Turns {
			if err := p.Turn(t); err != nil {
				return err
			}
		}
		return nil
	default:
		return export.Write(w, export.Format(output), c.Document(dir, "auto"))
	}
}

// summary prints the summary of a file where a user sees it.
func (d *diarizer) summary(file string, c recording.Content) (err error) {
	if !session.IsTerminal(d.Stderr) {
		return nil
	}
	d.above(func() {
		fmt.Fprintln(d.Stderr, display.TerminalSafe(file))
		err = tui.Summary(d.Stderr, display.State{Timeline: protocol.SnapshotOf(c.Turns), Position: c.Info.Length}, tui.Options{})
	})
	return err
}
