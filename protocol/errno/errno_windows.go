package errno

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// others are the numbers that Windows has for those of Unix.
var others = map[syscall.Errno][]syscall.Errno{
	syscall.EACCES:        {windows.ERROR_ACCESS_DENIED, windows.WSAEACCES},
	syscall.EADDRINUSE:    {windows.WSAEADDRINUSE},
	syscall.EADDRNOTAVAIL: {windows.WSAEADDRNOTAVAIL},
	syscall.EBUSY:         {windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION},
	syscall.ECONNREFUSED:  {windows.WSAECONNREFUSED, windows.ERROR_CONNECTION_REFUSED},
	syscall.ECONNRESET:    {windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.WSAENETRESET, windows.ERROR_NETNAME_DELETED},
	syscall.EDQUOT:        {windows.ERROR_DISK_QUOTA_EXCEEDED},
	syscall.EHOSTUNREACH:  {windows.WSAEHOSTUNREACH, windows.ERROR_HOST_UNREACHABLE},
	syscall.ENAMETOOLONG:  {windows.ERROR_FILENAME_EXCED_RANGE},
	syscall.ENETUNREACH:   {windows.WSAENETUNREACH, windows.ERROR_NETWORK_UNREACHABLE},
	syscall.ENOSPC:        {windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL},
	syscall.ENOTDIR:       {windows.ERROR_DIRECTORY},
	syscall.EPIPE:         {windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA, windows.ERROR_PIPE_NOT_CONNECTED},
}
