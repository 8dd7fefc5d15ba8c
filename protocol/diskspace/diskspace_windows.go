package diskspace

import "golang.org/x/sys/windows"

func of(dir string) (free, total int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var available, size uint64
	err = windows.GetDiskFreeSpaceEx(name, &available, &size, nil)
	return int64(available), int64(size), err
}
