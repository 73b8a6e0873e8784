package rcutest

// This file uses unsafe to get from a Head to the Object that begins with it, which is what users of
// [rcu.Domain.CallHead] do who want no closure.

import (
	"unsafe"

	"github.com/quiesce-go/quiesce/rcu"
)

func calledHead(h *rcu.Head) { retired((*Object)(unsafe.Pointer(h))) }
