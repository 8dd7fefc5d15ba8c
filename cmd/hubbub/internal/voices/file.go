package voices

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

// maxFile bounds an exported file, in bytes.
const maxFile = 2 << 20

// Write writes all voices.
func (s Store) Write(w io.Writer) error {
	list, err := s.List()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(append([]Voice{}, list...), "", "  ") // no voices are [], not null
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// Export writes all voices to a new file, which only its owner can read.
func (s Store) Export(path string) error {
	err := atomicfile.Write(path, 0o600, false, s.Write)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s exists already", path)
	}
	return hint.Add(err, cmp.Or(hint.Of(err), "Choose another file."))
}

// ReadExport reads the voices of an exported file. The name is for errors.
func ReadExport(file io.Reader, name string) (list []Voice, err error) {
	raw, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err == nil && len(list) == 0 {
		err = errors.New("the list is empty")
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("%s has no voiceprints: %w", name, protocol.WrongType(err)), "Name a file that `hubbub voices export` has written.")
	}
	for _, v := range list {
		if err := v.Check(); err != nil {
			return nil, hint.Add(err, cmp.Or(hint.Of(err), "Make it again from speech with `hubbub voices add`, and export it again."))
		}
	}
	return list, nil
}
