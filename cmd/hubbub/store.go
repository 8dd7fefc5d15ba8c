package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hubbub/localserver"
	"hubbub/localserver/store/backup"
	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/hint"
)

func newStore(a *App) *cobra.Command {
	return newGroup("store", "Back up, restore, check or empty the data folder of a server",
		newStoreBackup(a), newStoreRestore(a), newStoreCheck(a), newStorePurge(a))
}

func newStoreBackup(a *App) *cobra.Command {
	return a.onData(&cobra.Command{
		Use:   "backup FILE --data DIR",
		Short: "Write everything in a data folder to a file, also while its server runs",
		Long: `Write the data folder of a server to a new file: streams, events, voiceprints, jobs
and media, signing keys and the certificate. The server can be running and is not
interrupted; whatever it had acknowledged when the backup began is in it. The
file is verified before it gets its name. Only its owner can read it: it contains
the secrets of the server.`,
		Args: exactArgs("FILE"),
	}, nil, func(ctx context.Context, data string, args []string) (string, error) {
		size, err := backUp(ctx, data, args[0])
		return fmt.Sprintf("%d bytes written to %s", size, args[0]), err
	})
}

// backUp writes a backup to a new file, which has its name only when it is
// complete.
func backUp(ctx context.Context, data, file string) (size int64, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return 0, hint.Add(fmt.Errorf("%s exists already", file), "Give the name of a new file.")
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".hubbub-backup-*") // mode 0600
	if err != nil {
		return 0, hint.Add(fmt.Errorf("the backup cannot be written: %w", err), "Choose a folder that you may write to.")
	}
	defer func() { _ = os.Remove(out.Name()) }() // after an error
	err = localserver.Backup(ctx, data, out)
	if err == nil {
		size, err = out.Seek(0, io.SeekCurrent)
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return 0, err
	}
	if err := backup.Verify(out.Name()); err != nil {
		return 0, err
	}
	return size, os.Rename(out.Name(), file)
}

func newStoreRestore(a *App) *cobra.Command {
	cmd := a.onData(&cobra.Command{
		Use:   "restore FILE --data DIR",
		Short: "Make a data folder from a backup",
		Long: `Verify a file of 'hubbub store backup' and make a data folder from it. The folder
must be empty or not exist. Start a server with it afterwards. Streams that were
open at the time of the backup read error. API keys that were revoked after the
backup are valid again. After an error the folder is as before.`,
		Args: exactArgs("FILE"),
	}, nil, func(_ context.Context, data string, args []string) (string, error) {
		return fmt.Sprintf("%s restored to %s", args[0], data), backup.Restore(args[0], data, slog.New(slog.DiscardHandler))
	})
	cmd.Flags().Lookup("data").Usage = "new data `DIR`"
	return cmd
}

func newStoreCheck(a *App) *cobra.Command {
	var output choice
	cmd := a.onData(&cobra.Command{
		Use:   "check --data DIR",
		Short: "Verify the checksums of everything that is stored",
		Long: `Read everything that a stopped server has stored in its data folder, verify the
checksum of each record, and print one line for each stream of the store. Nothing
is changed. The exit code is 1 if something is damaged.`,
		Args: noArgs,
	}, nil, func(_ context.Context, data string, _ []string) (string, error) {
		reports, err := datafolder.Check(data)
		if err != nil {
			return "", err
		}
		if err := printList(a.Stdout, output.value, "STREAM\tRECORDS\tBYTES\tDAMAGED BYTES\tDAMAGED RANGES", reports, func(r datafolder.Report) string {
			return fmt.Sprintf("%s\t%d\t%d\t%d\t%d", r.Stream, r.Records, r.Bytes, r.Damaged, r.Ranges)
		}); err != nil {
			return "", err
		}
		for _, r := range reports {
			if r.Damaged > 0 {
				return "", hint.Add(errors.New("some of the store is damaged"),
					"The server starts with what is intact. Damaged media are deleted by 'hubbub store purge'.")
			}
		}
		return "", nil
	})
	addOutput(cmd, &output)
	return cmd
}

func newStorePurge(a *App) *cobra.Command {
	var all bool
	cmd := a.onData(&cobra.Command{
		Use:   "purge --data DIR",
		Short: "Delete the stored media",
		Long: `Delete all media objects, and with them the results of jobs, from the data folder
of a stopped server and print how many bytes that freed. It works on a full disk.
With --all also delete the jobs, the streams, their events and their voiceprints,
and make signed media addresses invalid. API keys, signing keys and the
certificate remain.`,
		Args: noArgs,
	}, nil, func(_ context.Context, data string, _ []string) (string, error) {
		freed, err := datafolder.Purge(data, all)
		return fmt.Sprintf("%d bytes freed", freed), err
	})
	cmd.Flags().BoolVar(&all, "all", false, "also delete the jobs, the streams, their events and their voiceprints")
	return cmd
}
