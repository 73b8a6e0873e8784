package sysv

import "errors"

// The errors of this package, by the names that System V gives them. Compare with errors.Is.
var (
	EPERM  = errors.New("sysv: EPERM: only the owner or the creator may do that")
	ENOENT = errors.New("sysv: ENOENT: no array has the key")
	EINTR  = errors.New("sysv: EINTR: interrupted while waiting")
	E2BIG  = errors.New("sysv: E2BIG: too many operations at once")
	EAGAIN = errors.New("sysv: EAGAIN: cannot be done now")
	EACCES = errors.New("sysv: EACCES: permission denied")
	EEXIST = errors.New("sysv: EEXIST: an array has the key")
	EINVAL = errors.New("sysv: EINVAL: invalid argument")
	EFBIG  = errors.New("sysv: EFBIG: no semaphore has the number")
	ENOSPC = errors.New("sysv: ENOSPC: too many arrays or semaphores")
	ERANGE = errors.New("sysv: ERANGE: value out of range")
	EIDRM  = errors.New("sysv: EIDRM: the array was removed")
)
