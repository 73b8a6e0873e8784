//go:build (amd64 || arm64) && gc && !purego && !race && !go1.28 && !android

package asm

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	// narrow has fewer columns than there are CPUs, as if some had been plugged in that the kernel had not told of.
	children["narrow"] = func(string) {
		columns = 1 // nothing has looked yet
		var all unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil || !all.IsSet(0) || all.Count() < 2 {
			fmt.Print("skip: needs CPU 0 and another one; ", err)
			return
		}
		runtime.LockOSThread()
		var first unix.CPUSet
		first.Set(0)
		_ = unix.SchedSetaffinity(0, &first)
		_, err := RSEQ()
		_ = unix.SchedSetaffinity(0, &all)
		runtime.UnlockOSThread()
		if err != nil {
			fmt.Print("skip: ", err)
			return
		}
		all.Clear(0)
		fell := make(chan bool)
		go func() {
			runtime.LockOSThread() // never undone: the thread ends, and its CPU set with it
			_ = unix.SchedSetaffinity(0, &all)
			var b Block
			for range 1000 {
				b.Add(0, 1)
			}
			fell <- Column() >= columns && b.Sum(0) == 1000
		}()
		fmt.Printf("fell back: %t, ", <-fell)
		fmt.Printf("count: %v", count(1<<18))
	}
	// many has 512 times as many columns as an ordinary machine, and no more CPUs.
	children["many"] = func(string) {
		columns = 1024 // nothing has looked yet
		resident := func() (pages int) {
			text, _ := os.ReadFile("/proc/self/statm")
			_, _ = fmt.Sscan(string(text), new(int), &pages)
			return pages
		}
		blocks := make([]Block, 10_000)
		before := resident()
		for i := range blocks {
			blocks[i].Add(0, 1)
		}
		for i := range blocks {
			if blocks[i].Sum(0) != 1 {
				fmt.Printf("block %d: %d; ", i, blocks[i].Sum(0))
				break
			}
		}
		fmt.Printf("%d MiB", (resident()-before)*os.Getpagesize()>>20)
	}
	// wide registers more than the first 32 bytes, which has newer kernels keep ids by other rules: they are written when
	// they change, and not whenever the thread was interrupted.
	children["wide"] = func(string) {
		const bytes = 64
		if bytes > areaSize {
			panic("an area is not so large")
		}
		rseqSyscall = func(a *area) unix.Errno {
			_, _, errno := unix.RawSyscall6(unix.SYS_RSEQ, uintptr(unsafe.Pointer(a)), bytes, 0, rseqSignature, 0, 0)
			return errno
		}
		if _, err := RSEQ(); err != nil {
			fmt.Print("skip: ", err)
			return
		}
		var over atomic.Bool
		calm := make(chan bool)
		go func() { // a storm
			pid := unix.Getpid()
			for n := 0; !over.Load(); n++ {
				for tid := pid; tid < pid+64; tid++ {
					_ = unix.Tgkill(pid, tid, unix.SIGURG)
				}
				runtime.GOMAXPROCS(1 + n%4)
			}
			close(calm)
		}()
		err := count(1 << 18)
		over.Store(true)
		<-calm
		fmt.Printf("count: %v", err)
	}
}

// TestColumns_Beyond: a CPU whose number is beyond the columns costs speed and no count.
func TestColumns_Beyond(t *testing.T) {
	out := child(t, "narrow", "")
	if why, ok := strings.CutPrefix(out, "skip: "); ok {
		t.Skip(why)
	}
	if out != "fell back: true, count: <nil>" {
		t.Error(out)
	}
}

// TestColumns_Unused: the columns of CPUs that do not run the program take no memory. If those of 10,000 Blocks did, they
// would take 80 MiB at least.
func TestColumns_Unused(t *testing.T) {
	var mib int
	out := child(t, "many", "")
	if n, err := fmt.Sscanf(out, "%d MiB", &mib); n != 1 || mib > 20 {
		t.Error(out, err)
	}
	t.Log(out)
}

// TestFault_P10_Wide: nothing hangs on the rules by which the kernel writes ids anew.
func TestFault_P10_Wide(t *testing.T) {
	if isCgo {
		t.Skip("the areas are libc's")
	}
	out := child(t, "wide", "")
	if why, ok := strings.CutPrefix(out, "skip: "); ok {
		t.Skip(why)
	}
	if out != "count: <nil>" {
		t.Error(out)
	}
}
