package sysv

// An Errno is an error by the name that System V has for it. Compare with errors.Is.
type Errno string

// Error returns the name, and what it stands for.
func (e Errno) Error() string { return "sysv: " + string(e) }

// The errors of this package.
const (
	EPERM  Errno = "EPERM: only the owner or the creator may do that"
	ENOENT Errno = "ENOENT: no array has the key"
	EINTR  Errno = "EINTR: interrupted while waiting"
	E2BIG  Errno = "E2BIG: too many operations at once"
	EAGAIN Errno = "EAGAIN: cannot be done now"
	EACCES Errno = "EACCES: permission denied"
	EEXIST Errno = "EEXIST: an array has the key"
	EINVAL Errno = "EINVAL: invalid argument"
	EFBIG  Errno = "EFBIG: no semaphore has the number"
	ENOSPC Errno = "ENOSPC: too many arrays or semaphores"
	ERANGE Errno = "ERANGE: value out of range"
	EIDRM  Errno = "EIDRM: the array was removed"
)
