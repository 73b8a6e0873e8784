package rcutest

// This file uses unsafe to get from a Head to the Object that begins with it, which is what users of
// [rcu.Domain.CallHead] do who want no closure. It relies on a struct beginning with its first field, which
// the language does not promise and unsafe.Offsetof shows. Tried with Go 1.26.

import (
	"unsafe"

	"github.com/quiesce-go/quiesce/rcu"
)

const _ = -unsafe.Offsetof(Object{}.head) // is 0

func calledHead(h *rcu.Head) { retired((*Object)(unsafe.Pointer(h))) }
