package asm

import "golang.org/x/sys/unix"

const mapNoReserve = unix.MAP_NORESERVE

// smallPages keeps a huge page from spanning the columns of several CPUs, and
// memory from being used for CPUs that do nothing.
func smallPages(m []byte) { _ = unix.Madvise(m, unix.MADV_NOHUGEPAGE) }
