package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/capture/device"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/tui/display"
)

// testLength is how much audio of each device is measured.
const testLength = 3 * time.Second

// deviceTest is the level of a device over testLength.
type deviceTest struct {
	device.Device
	Peak  *float64 `json:"peak_db,omitempty"` // dB of full scale; absent = the device failed
	RMS   *float64 `json:"rms_db,omitempty"`
	Error string   `json:"error,omitempty"`
}

func newDevices(a *App) *cobra.Command {
	var output choice
	test := false
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the audio capture devices",
		Long: `List the audio capture devices: those of PortAudio, where this build has it, and
those of the recorders that are installed (pw-record, parec, arecord, ffmpeg).
INPUT is what --input takes. The default is the device of --input mic.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, err := device.List(cmd.Context())
			if err != nil {
				return err
			}
			if len(devices) == 0 && output.value == "text" {
				if err := device.Missing(); err != nil {
					a.notice("%v\n%s", err, hint.Of(err))
				} else {
					a.notice("no capture device on this machine\nPlug one in, or play a file with --input FILE.")
				}
				return nil
			}
			if test {
				return a.testDevices(cmd.Context(), devices, output.value == "json")
			}
			return printList(a.Stdout, output.value, "NUMBER\tNAME\tHOST API\tCHANNELS\tRATE\tDEFAULT\tINPUT", devices, func(d device.Device) string {
				isDefault := ""
				if d.Default {
					isDefault = "default"
				}
				return fmt.Sprintf("%d\t%s\t%s\t%d\t%.0f\t%s\t%s", d.Number, display.TerminalSafe(d.Name), d.HostAPI, d.Channels, d.Rate, isDefault, d.Input)
			})
		},
	}
	addOutput(cmd, &output)
	cmd.Flags().BoolVar(&test, "test", false, "measure three seconds of each device's level")
	return cmd
}

// testDevices measures one device after the other: several may be one microphone.
func (a *App) testDevices(ctx context.Context, devices []device.Device, json bool) error {
	tests := []deviceTest{}
	for _, d := range devices {
		t := deviceTest{Device: d}
		level, err := deviceLevel(ctx, d, func(l capture.Level) { a.progress(levelLine(d, l)) })
		a.progress("")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		line := levelLine(d, level)
		if err != nil {
			t.Error = err.Error()
			line = fmt.Sprintf("%-12s %v", d.Input, err)
		} else {
			peak, rms := decibels(level.Peak), decibels(level.RMS)
			t.Peak, t.RMS = &peak, &rms
		}
		if tests = append(tests, t); json {
			continue
		}
		if _, err := fmt.Fprintln(a.Stdout, line); err != nil {
			return err
		}
	}
	if json {
		return protocol.WriteJSON(a.Stdout, tests)
	}
	return nil
}

// deviceLevel is the level of testLength of a device; show gets that of each chunk.
func deviceLevel(ctx context.Context, d device.Device, show func(capture.Level)) (capture.Level, error) {
	var peak float32
	var power float64
	chunks := 0
	err := capture.Measure(ctx, d.Input, func(l capture.Level) bool {
		show(l)
		peak = max(peak, l.Peak)
		power += float64(l.RMS) * float64(l.RMS)
		chunks++
		return time.Duration(chunks)*capture.ChunkDuration < testLength
	})
	return capture.Level{Peak: peak, RMS: float32(math.Sqrt(power / float64(max(1, chunks))))}, err
}

// quietest is the level of digital silence, in dB of full scale.
const quietest = -96

func decibels(x float32) float64 {
	return math.Round(10*max(quietest, 20*math.Log10(float64(max(x, 1e-9))))) / 10
}

// levelLine shows a level from display.MeterFloor to full scale.
func levelLine(d device.Device, l capture.Level) string {
	const cells = 20
	n := int(math.Ceil(cells * display.ScaleDecibels(l.Peak, display.MeterFloor, 0)))
	bar := strings.Repeat("#", n) + strings.Repeat(".", cells-n)
	state := ""
	switch {
	case l.Peak == 0:
		state = "  silent: muted?"
	case decibels(l.Peak) < display.MeterFloor:
		state = "  very quiet"
	}
	return fmt.Sprintf("%-12s %s  peak %5.1f dB  mean %5.1f dB  %s%s", d.Input, bar, decibels(l.Peak), decibels(l.RMS), display.TerminalSafe(d.Name), state)
}
