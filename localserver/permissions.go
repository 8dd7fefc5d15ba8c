package localserver

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"hubbub/localserver/apikeys"
)

// othersMayWrite are the permissions of a file that others than its owner can
// change.
const othersMayWrite fs.FileMode = 0o022

// warnWritable logs a warning for every file that decides who may use the
// service and that other users of the machine can change.
func warnWritable(o Options, log *slog.Logger) {
	if runtime.GOOS == "windows" { // has no such permissions
		return
	}
	var files []string
	if o.DataDir != "" {
		files = append([]string{o.DataDir, filepath.Join(o.DataDir, certificateFile)}, apikeys.Files(o.DataDir)...)
	}
	if o.TLS.Mode == TLSFiles {
		files = append(files, o.TLS.Cert, o.TLS.Key)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode()&othersMayWrite != 0 {
			log.Warn("other users of this machine can change this file; take the permission away with chmod go-w",
				"file", file, "mode", info.Mode().Perm().String())
		}
	}
}
