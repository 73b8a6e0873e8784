//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

// This file registers threads with rseq(2) and checks what the sequences in
// rseq_$GOARCH.s rely on. It uses unsafe for memory that the kernel writes.
//
// Runtime facts, with Go 1.26 and 1.27 tested (the build constraint above ends
// with the newest tested release):
//
//   - Without cgo nobody else registers rseq, and the runtime leaves words of
//     thread-local storage to us: on amd64 FS points at m.tls+8, where only
//     FS:-8 (g) is used; FS:0 and FS:8 are zero on a new thread. On arm64 TPIDR_EL0 is
//     not used, but clone copies it, so an area names the m it belongs to.
//   - g.m is at offset 48 of g.
//   - A goroutine is never preempted by the scheduler inside assembly, and
//     every signal, the scheduler's own too, aborts a sequence.
//
// layoutCheck tests the first two at start-up. With cgo, FS and TPIDR_EL0
// belong to libc; then glibc's own registration is used.

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/pin"
)

const rseqBuilt = true

// area is the kernel's struct rseq with what we keep about its thread. Two
// areas never share a cache line: the owner writes cs at every sequence.
type area struct {
	cpuStart uint32 // written by the kernel
	cpuID    uint32 // written by the kernel: the CPU; or one of the values below
	cs       uint64 // written by the thread; the kernel clears it
	flags    uint32
	node     uint32
	mmCID    uint32
	_        uint32

	m   uintptr // the runtime's m of the thread; offset 32, read by rseq_arm64.s
	tid int32   // the thread; 0: the area is free
	_   [20]byte
}

const (
	areaSize = 64

	// registered is the number of bytes we register. More than the original
	// 32 selects rules under which ids are not refreshed on signals.
	registered = 32

	cpuUninitialized = ^uint32(0)     // registration has not taken effect
	cpuFailed        = ^uint32(0) - 1 // registration was refused
	cpuIgnored       = ^uint32(0) - 2 // ours: registration was accepted and not done
)

var _ [areaSize - unsafe.Sizeof(area{})]byte
var _ [unsafe.Sizeof(area{}) - areaSize]byte
var _ [0]byte = [unsafe.Offsetof(area{}.m) - 32]byte{}

// Read by the assembly. They are written by rseqStart and by tests only, and
// every value leads a sequence to memory that may be read.
var (
	// areaDelta is what to add to the pointer that the thread keeps, to get the
	// address of its area.
	//lint:ignore U1000 read by the assembly
	areaDelta uintptr
	// foreign is set when the areas are not ours (arm64: they name no m).
	foreign uint64
	// rseqColumns bounds the columns that a sequence may touch; 0 sends
	// every operation to the slow path. A CPU number from the kernel that
	// is not below it is not trusted.
	rseqColumns uint32
)

func setRSEQColumns(n uint32) { atomic.StoreUint32(&rseqColumns, n) }

// areas hands out areas for threads that register. An area outlives its
// thread, because the kernel may write to it until the thread is gone, and is
// used again when the kernel no longer knows the thread.
var areas struct {
	sync.Mutex
	all     []*area          // off the Go heap, never unmapped
	free    []int            // indexes into all with tid == 0
	owners  []unsafe.Pointer // owners[i] keeps all[i].m from being collected, so that its address names one thread only
	sweepAt int              // number of areas at which dead threads are looked for
	refused atomic.Uint64
}

// takeArea returns a zeroed area that belongs to no thread.
func takeArea() (int, *area) {
	areas.Lock()
	defer areas.Unlock()
	if len(areas.free) == 0 && len(areas.all) >= areas.sweepAt {
		sweepAreasLocked()
	}
	if len(areas.free) == 0 {
		growAreasLocked()
	}
	n := len(areas.free)
	if n == 0 {
		return 0, nil // no memory: the thread will try again
	}
	i := areas.free[n-1]
	areas.free = areas.free[:n-1]
	return i, areas.all[i]
}

func giveBackArea(i int) {
	areas.Lock()
	defer areas.Unlock()
	dropAreaLocked(i)
}

// dropAreaLocked frees area i. The caller holds areas' lock and knows that no
// thread uses it.
func dropAreaLocked(i int) {
	*areas.all[i] = area{cpuID: cpuUninitialized}
	areas.owners[i] = nil
	areas.free = append(areas.free, i)
}

// sweepAreasLocked frees the areas of threads that have ended. A thread id
// that was given to another thread of this process keeps its area until a
// later sweep. The caller holds areas' lock.
func sweepAreasLocked() {
	pid := unix.Getpid()
	for i, a := range areas.all {
		if tid := atomic.LoadInt32(&a.tid); tid != 0 && unix.Tgkill(pid, int(tid), 0) == unix.ESRCH {
			dropAreaLocked(i)
		}
	}
	areas.sweepAt = max(256, 2*(len(areas.all)-len(areas.free)))
}

// growAreasLocked maps a page of areas. The caller holds areas' lock.
func growAreasLocked() {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	for ; len(page) >= areaSize; page = page[areaSize:] {
		areas.all = append(areas.all, (*area)(unsafe.Pointer(&page[0])))
		areas.owners = append(areas.owners, nil)
		dropAreaLocked(len(areas.all) - 1)
	}
}

// rseqThread registers the calling thread if that was not tried before. It
// reports whether the thread is newly registered, in which case a sequence
// that found no area is worth another try. A thread that the kernel refuses
// keeps an area whose CPU number no sequence accepts.
func rseqThread() (fresh bool) {
	if foreign != 0 || rseqErr != nil || currentArea() != nil {
		return false
	}
	i, a := takeArea()
	if a == nil {
		return false
	}
	// No user code and nothing that may park runs between here and the
	// unpin, so that the thread stays the same.
	pin.Pin()
	if currentArea() != nil { // the goroutine changed threads meanwhile
		pin.Unpin()
		giveBackArea(i)
		return true
	}
	m := currentM()
	a.m = uintptr(m)
	atomic.StoreInt32(&a.tid, int32(rawGettid()))
	refused := registerArea(a)
	setArea(unsafe.Pointer(a))
	pin.Unpin()

	areas.Lock()
	areas.owners[i] = m // m is alive until here: it ran this code, or its thread did
	areas.Unlock()
	if refused != 0 {
		areas.refused.Add(1)
		return false
	}
	return true
}

// registerArea makes a the calling thread's area, or marks it as refused and
// returns why. The caller is pinned.
func registerArea(a *area) (refused unix.Errno) {
	if errno := rseqSyscall(a); errno != 0 {
		atomic.StoreUint32(&a.cpuID, cpuFailed)
		return errno
	}
	// A kernel, or a sandbox, that only says yes is found out by what a
	// second registration gets. If it did more, the area is its own now: also a
	// CPU number beyond the columns is left to it, and to each sequence to see.
	if rseqSyscall(a) != unix.EBUSY {
		atomic.StoreUint32(&a.cpuID, cpuIgnored)
		return unix.ENOSYS
	}
	return 0
}

// rseqSyscall is a variable for the tests.
var rseqSyscall = func(a *area) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RSEQ, uintptr(unsafe.Pointer(a)), registered, 0, rseqSignature, 0, 0)
	return errno
}

func rawGettid() int {
	tid, _, _ := unix.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	return int(tid)
}

// currentArea returns the calling thread's area, or nil.
func currentArea() *area { return (*area)(getArea()) }

// rseqColumn returns the CPU number that the kernel keeps in the calling
// thread's area, or -1. As in a sequence, rseqColumns comes first.
func rseqColumn() int {
	if n := int64(atomic.LoadUint32(&rseqColumns)); n != 0 {
		if id := areaCPU(); id < n {
			return int(id)
		}
	}
	return -1
}

func rseqInfo() RSEQInfo {
	info := RSEQInfo{Owner: "quiesce", FeatureSize: 20, Refused: areas.refused.Load()}
	if foreign != 0 {
		info.Owner, info.FeatureSize = "glibc", glibcSize
		return info
	}
	areas.Lock()
	info.Threads = len(areas.all) - len(areas.free)
	areas.Unlock()
	return info
}

// rseqStart decides whether restartable sequences work here. It leaves the
// calling thread registered if they do. Until setRSEQColumns opens the columns,
// and for good if this fails, no sequence looks at an area.
func rseqStart() error {
	if !calls {
		return errors.New("the compiler passes arguments in an unknown way")
	}
	if err := findSequences(); err != nil {
		return err
	}
	if isCgo {
		off, size, err := glibcRSEQ()
		if err != nil {
			return err
		}
		glibcSize = size
		areaDelta, foreign = off, 1
	} else {
		if err := layoutCheck(); err != nil {
			return err
		}
		runtime.LockOSThread() // probe wants the thread that was registered
		defer runtime.UnlockOSThread()
		rseqThread()
	}
	err := probe()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) {
		// Somebody registered this thread before us: the dynamic loader does
		// that to the first thread of a position-independent executable.
		// The others may be free, and this one falls back.
		err = onNewThread(func() error {
			rseqThread()
			return probe()
		})
	}
	return err
}

// onNewThread runs f on a thread that has just been started and ends with it.
func onNewThread(f func() error) error {
	runtime.LockOSThread() // so that the new goroutine cannot get this thread
	defer runtime.UnlockOSThread()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never undone: the thread ends
		result <- f()
	}()
	return <-result
}

var glibcSize uint32

// probe compares the CPU number with getcpu(2), then lets the kernel interrupt a
// sequence and sees whether it is restarted.
func probe() error {
	var (
		id      uint32
		agrees  bool
		aborted bool
		failed  string // the system call that did, and why
		errno   unix.Errno
	)
	// Pinned, and so nothing that allocates or may park.
	pin.Pin()
	a := currentArea()
	if a == nil {
		pin.Unpin()
		return errors.New("no memory for the thread's area")
	}
	if id = atomic.LoadUint32(&a.cpuID); id < uint32(columns) {
		agrees = cpuAgrees(a)
		for n := 0; n < 5 && !aborted && failed == ""; n++ {
			var timer int32
			// On a slow machine the signal may come before the sequence, so it is later each time.
			if timer, failed, errno = alarm(20_000 << (2 * n)); failed == "" {
				aborted = rseqProbe(1 << 25)
				unix.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(timer), 0, 0)
			}
		}
	}
	pin.Unpin()

	switch {
	case id == cpuFailed && foreign == 0:
		return fmt.Errorf("%w: the kernel refuses rseq(2): %w", ErrUnsupported, rseqSyscall(a))
	case id >= cpuIgnored && foreign == 0:
		return errors.New("the kernel accepts rseq(2) but does not do it")
	case id >= uint32(columns) && id < cpuIgnored:
		return fmt.Errorf("the kernel says CPU %d where only %d are possible", id, columns)
	case id >= uint32(columns):
		return fmt.Errorf("glibc did not register its threads (cpu_id is %#x)", id)
	case !agrees:
		return errors.New("rseq's CPU number is not that of getcpu(2)")
	case failed != "":
		return fmt.Errorf("cannot test that sequences are restarted: %s: %w", failed, errno)
	case !aborted:
		return errors.New("a signal did not abort a restartable sequence")
	}
	return nil
}

// cpuAgrees compares the CPU number in a with getcpu(2). The thread may move
// between the two. Without getcpu there is nothing to compare with.
func cpuAgrees(a *area) bool {
	for range 100 {
		id := atomic.LoadUint32(&a.cpuID)
		if cpu, _, ok := getcpu(); !ok || uint32(cpu) == id {
			return true
		}
	}
	return false
}

// alarm has the kernel signal the calling thread in some nanoseconds, by a timer that it
// returns. The signal is SIGURG, which the runtime sends to its own threads all
// the time. The caller is pinned.
func alarm(after int64) (timer int32, failed string, errno unix.Errno) {
	type sigevent struct { // the kernel's struct sigevent on 64-bit machines
		value  uintptr
		signo  int32
		notify int32
		tid    int32
		_      [44]byte
	}
	const clockMonotonic, sigevThreadID = 1, 4
	ev := sigevent{signo: int32(unix.SIGURG), notify: sigevThreadID, tid: int32(rawGettid())}
	if _, _, errno = unix.RawSyscall(unix.SYS_TIMER_CREATE, clockMonotonic, uintptr(unsafe.Pointer(&ev)), uintptr(unsafe.Pointer(&timer))); errno != 0 {
		return 0, "timer_create", errno
	}
	when := [4]int64{0, 0, 0, after} // interval and value, seconds and nanoseconds
	if _, _, errno = unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&when)), 0, 0, 0); errno != 0 {
		unix.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(timer), 0, 0)
		return 0, "timer_settime", errno
	}
	return timer, "", 0
}

// A sequence ties a function of the assembly to its descriptor, the kernel's
// struct rseq_cs: where the sequence starts (where the descriptor's address was stored
// or, on amd64, is compared), where it has committed, and where to go on abort
// (behind the signature). The offsets depend on the assembler, so they are not
// written down but found in the code.
type sequence struct {
	name   string
	code   *[sequenceLen]byte
	cs     *csDescriptor
	commit []byte
}

const sequenceLen = 512

type csDescriptor struct {
	version, flags uint32
	start          uint64
	length         uint64
	abort          uint64
}

// Defined in the assembly: descriptors, and the addresses of the functions.
var (
	addCS, gateCS, probeCS, casCS, lockCS, claimCS, twoCS, pushCS, popCS, withinCS, logCS                       csDescriptor
	addCode, gateCode, probeCode, casCode, lockCode, claimCode, twoCode, pushCode, popCode, withinCode, logCode *[sequenceLen]byte
)

func sequences() []sequence {
	return append(sequencesOurs(), []sequence{
		{nameAdd, addCode, &addCS, addCommit},
		{nameGateAdd, gateCode, &gateCS, addCommit},
		{"rseqProbe", probeCode, &probeCS, probeCommit},
		{"blockCompareAndSwap", casCode, &casCS, storeCommit},
		{nameTryLock, lockCode, &lockCS, storeCommit},
		{nameClaim, claimCode, &claimCS, claimCommit},
		{"blockSwapTwo", twoCode, &twoCS, stackCommit},
		{"blockPush", pushCode, &pushCS, stackCommit},
		{"blockPop", popCode, &popCS, stackCommit},
		{"blockAddWithin", withinCode, &withinCS, storeCommit},
		{nameLogWrite, logCode, &logCS, stackCommit},
	}...)
}

// findSequences fills the descriptors. It runs before any sequence does.
func findSequences() error {
	for _, s := range sequences() {
		d, ok := describe(s.code[:], s.commit)
		if !ok {
			return fmt.Errorf("the assembler laid out %s in an unknown way", s.name)
		}
		base := uint64(uintptr(unsafe.Pointer(s.code)))
		d.start += base
		d.abort += base
		*s.cs = d
	}
	return nil
}

// describe finds a sequence in code and returns its descriptor, relative to the
// beginning of code.
func describe(code, commit []byte) (d csDescriptor, ok bool) {
	at := 0
	for _, mark := range [][]byte{startBytes, commit, signatureBytes} {
		i := bytes.Index(code[at:], mark)
		if i < 0 {
			return csDescriptor{}, false
		}
		at += i + len(mark)
		switch {
		case d.start == 0:
			d.start = uint64(at - startInside)
		case d.length == 0:
			d.length = uint64(at) - d.start
		default:
			d.abort = uint64(at)
		}
	}
	return d, true
}
