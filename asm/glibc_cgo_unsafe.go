//go:build cgo && linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

// With cgo, glibc 2.35 and later has registered every thread with rseq(2). It
// says where the area is through two symbols of the dynamic loader. This file
// reads them out of the mapped loader, without importing "C", which is what
// unsafe is for.

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"unsafe"
)

// glibcRSEQ returns the offset of the areas from the thread pointer and the
// number of bytes of them in use.
func glibcRSEQ() (offset uintptr, size uint32, err error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, 0, err
	}
	// The mapping of a file whose name begins so and which has the symbols is
	// the loader's: address range, permissions, offset, device, inode, path.
	err = errors.New("this cgo program has no glibc loader (static, or another libc), so nobody registered its threads")
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[2] != "00000000" || !strings.HasPrefix(path.Base(f[5]), "ld-") {
			continue
		}
		start, _, _ := strings.Cut(f[0], "-")
		var base uint64
		if base, err = strconv.ParseUint(start, 16, 64); err != nil {
			continue
		}
		if offset, size, err = loaderRSEQ(f[5], uintptr(base)); err == nil {
			break
		}
	}
	return offset, size, err
}

// loaderRSEQ reads __rseq_offset and __rseq_size of the loader in the file,
// which is mapped at base.
func loaderRSEQ(file string, base uintptr) (offset uintptr, size uint32, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	// The file may have been replaced since it was mapped. Its beginning has
	// the program headers and the build id.
	var head [1024]byte
	r, err := os.Open(file)
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, err
	}
	if mapped := *(**[1024]byte)(unsafe.Pointer(&base)); *mapped != head {
		return 0, 0, fmt.Errorf("%s is not the file that was loaded", file)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, 0, err
	}
	var offsetAt, sizeAt uint64
	for _, s := range symbols {
		switch s.Name {
		case "__rseq_offset":
			offsetAt = s.Value
		case "__rseq_size":
			sizeAt = s.Value
		}
	}
	if offsetAt == 0 || sizeAt == 0 {
		return 0, 0, fmt.Errorf("%s has no __rseq_offset: glibc before 2.35, or another libc, registers no threads", file)
	}
	at := func(value uint64) unsafe.Pointer {
		address := base + uintptr(value)
		return *(*unsafe.Pointer)(unsafe.Pointer(&address))
	}
	offset = uintptr(*(*int)(at(offsetAt)))
	size = *(*uint32)(at(sizeAt))
	if size == 0 {
		return 0, 0, errors.New("glibc did not register its threads (the kernel refused, or GLIBC_TUNABLES says glibc.pthread.rseq=0)")
	}
	return offset, size, nil
}
