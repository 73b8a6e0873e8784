//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/gate"
)

// An order is what the traced child asks of its tracer, by a file that they share and SIGUSR1.
type order struct {
	Start, Length uint64    // of a sequence
	At            uint64    // the instruction to stop at; 0: tell which ones it goes through
	CPU           int64     // to be moved to meanwhile, if it is not negative
	Change        [4]change // somebody else's, meanwhile
}

type change struct{ Addr, Value uint64 }

const answerAt = 4096 // in the file, where the tracer puts an answer

type answer [512]uint64 // the instructions' addresses, 0 behind the last one

// TestInterrupt stops each sequence at each of its instructions. Meanwhile somebody else does a whole operation
// in the column, or the thread is moved to another CPU, or the Block is shut. Then the sequence must begin again: as
// if it had come after the other's, in the column where it is now, or not at all. In the twin, whose descriptors say
// nothing to the kernel, none does.
func TestInterrupt(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	for _, blind := range []bool{false, true} {
		out := trace(t, fmt.Sprint(blind))
		t.Logf("blind: %v\n%s", blind, out)
		if why, ok := strings.CutPrefix(out, "skip: "); ok {
			t.Skip(why)
		}
		lines := 0
		for line := range strings.Lines(out) {
			var name string
			var stops, wrong int
			if n, err := fmt.Sscanf(line, "%s stopped %d times, %d wrong", &name, &stops, &wrong); n != 3 || stops < 3 || (wrong > 0) != blind {
				t.Errorf("blind: %v: %s%v", blind, line, err)
			}
			lines++
		}
		if lines != len(sequences())-1 { // all but the probe
			t.Errorf("blind: %v: %d sequences", blind, lines)
		}
	}
}

// trace runs the child "interrupted" and does what it orders.
func trace(t *testing.T, arg string) string {
	t.Helper()
	orders, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	cmd := childCommand(t, "interrupted", arg)
	cmd.ExtraFiles = []*os.File{orders}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Skip("this process may not trace another: ", err)
	}
	pid := cmd.Process.Pid
	must := func(err error) {
		if err != nil {
			_ = cmd.Process.Kill()
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	var (
		o         order
		stop      uint64                          // where the breakpoint is, or 0
		code      = make([]byte, len(breakpoint)) // what it has replaced
		recording bool
		seen      answer
		n         int
	)
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		must(err)
		if status.Exited() || status.Signaled() {
			_ = cmd.Wait() // its pipes; the process is gone
			if status.ExitStatus() != 0 {
				t.Fatalf("it ended with %#x\n%s", status, out.String())
			}
			return out.String()
		}
		pass := 0
		switch sig := status.StopSignal(); sig {
		case unix.SIGURG: // the scheduler's, which will ask again
		case unix.SIGUSR1:
			must(binary.Read(&at{orders, 0}, binary.NativeEndian, &o))
			if stop = o.At; stop == 0 {
				stop = o.Start
			}
			_, err := syscall.PtracePeekText(pid, uintptr(stop), code)
			must(err)
			_, err = syscall.PtracePokeText(pid, uintptr(stop), breakpoint)
			must(err)
		case unix.SIGTRAP:
			if stop == 0 && !recording {
				break // the child's beginning
			}
			pc, err := counter(pid, stop)
			must(err)
			if stop != 0 {
				if pc != stop {
					must(fmt.Errorf("stopped at %#x and not at %#x", pc, stop))
				}
				_, err := syscall.PtracePokeText(pid, uintptr(stop), code)
				must(err)
				stop, recording, n = 0, o.At == 0, 0
				for _, c := range o.Change {
					if c.Addr != 0 {
						_, err := syscall.PtracePokeData(pid, uintptr(c.Addr), binary.NativeEndian.AppendUint64(nil, c.Value))
						must(err)
					}
				}
				if o.CPU >= 0 {
					must(moveTo(pid, int(o.CPU)))
				}
			}
			if recording {
				if recording = pc-o.Start < o.Length; !recording {
					seen[n] = 0
					must(binary.Write(&at{orders, answerAt}, binary.NativeEndian, seen))
				} else if !slices.Contains(seen[:n], pc) {
					seen[n] = pc
					n++
				}
			}
		default:
			pass = int(sig)
		}
		request := unix.PTRACE_CONT
		if recording {
			request = unix.PTRACE_SINGLESTEP
		}
		must(ptrace(request, pid, pass))
	}
}

func moveTo(tid, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(tid, &set)
}

// at reads and writes a file from an offset on.
type at struct {
	*os.File
	off int64
}

func (a *at) Read(p []byte) (int, error) {
	n, err := a.ReadAt(p, a.off)
	a.off += int64(n)
	return n, err
}

func (a *at) Write(p []byte) (int, error) { return a.WriteAt(p, a.off) }

func init() { children["interrupted"] = interrupted }

type (
	adder     = func(b *Block, i int, delta int64)
	tryLocker = func(b *Block, i int) (*Lock, int)
	claimer   = func(c *Claims, v int64, other func(*Claims, int64) *int64) *int64

	namedAdd struct {
		name string
		do   adder
	}
	namedTryLock struct {
		name string
		do   tryLocker
	}
	namedClaim struct {
		name string
		do   claimer
	}
)

// An interruption is an operation, and somebody else's that comes in between.
type interruption struct {
	name  string
	run   func() string    // what it returns
	other map[*int64]int64 // what the other one stores
	want  string           // what it returns after the other, in the same column
	moved string           // what it returns in another column
	word  *int64           // what it must have stored to, last of all
	value int64            // when it came after the other
	open  bool             // it may be done although it was shut meanwhile
}

// interrupted prints how often each sequence was stopped and did not do what it should.
func interrupted(arg string) {
	orders := os.NewFile(3, "orders")
	if _, err := RSEQ(); err != nil {
		fmt.Print("skip: ", err)
		return
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		fmt.Print("skip: ", err)
		return
	}
	var cpus []int
	for cpu := range columns {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	if len(cpus) < 2 {
		fmt.Print("skip: needs two CPUs")
		return
	}
	if err := moveTo(0, cpus[0]); err != nil {
		fmt.Print("skip: ", err)
		return
	}
	col := cpus[0]
	if Column() != col {
		fmt.Print("skip: libc has registered the first thread with the kernel, and not for us")
		return
	}

	var b Block
	b.Alloc(16)
	var c Claims
	c.Make()
	var l Log
	l.Make(256)
	l.Write(1, nil)
	word := func(i int) *int64 { return b.lease.Load().word(tierRSEQ, col, i) }
	ends := func(i int) *int64 { return l.ends.lease.Load().word(tierRSEQ, col, i) }
	record := func(at uint64) *int64 { return (*int64)(unsafe.Pointer(l.buffer(tierRSEQ, col).word(at))) }
	gate.Slow = func(unsafe.Pointer, int, int64) {}
	// shut is what Gate.Shut stores.
	shut := [4]change{{Addr: uint64(uintptr(unsafe.Pointer(&b.base)))}, {Addr: uint64(uintptr(unsafe.Pointer(&c.block.base)))}, {Addr: uint64(uintptr(unsafe.Pointer(&l.ends.base)))}}
	const no = "-1"
	here, there := fmt.Sprint(col), fmt.Sprint(cpus[1])
	all := []interruption{
		{"blockCompareAndSwap", func() string { return fmt.Sprint(blockCompareAndSwap(&b, 0, col, 0, 1)) },
			map[*int64]int64{word(0): 1000}, no, no, word(0), 1000, false},
		{"blockSwapTwo", func() string { return fmt.Sprint(blockSwapTwo(&b, 0, col, 0, 1, 2, 3)) },
			map[*int64]int64{word(0): 1000}, no, no, word(0), 1000, false},
		{"blockPush", func() string { return fmt.Sprint(blockPush(&b, 0, 4, 5), *word(1)) },
			map[*int64]int64{word(0): 1, word(1): 7}, here + " 7", "", word(0), 2, false},
		{"blockPop", func() string { c, v := blockPop(&b, 3); return fmt.Sprint(c, " ", v) },
			map[*int64]int64{word(3): 1}, here + " 8", no + " 0", word(3), 0, false},
		{"blockAddWithin", func() string { return fmt.Sprint(blockAddWithin(&b, 0, 1, -10, 10)) },
			map[*int64]int64{word(0): 9}, no, there, word(0), 9, false},
		{nameLogWrite, func() string { return fmt.Sprint(logWrite(&l, 2, []byte("twelve bytes")), *record(3)>>32) },
			map[*int64]int64{record(2): 0, record(3): 7 << 32, ends(logHead): 4}, "true 7", "", ends(logHead), 8, false},
	}
	for _, op := range adds {
		all = append(all, interruption{op.name, func() string { op.do(&b, 0, 1); return "" },
			map[*int64]int64{word(0): 1000}, "", "", word(0), 1001, false})
	}
	for _, op := range tryLocks {
		all = append(all, interruption{op.name, func() string { lock, _ := op.do(&b, 0); return fmt.Sprint(lock != nil) },
			map[*int64]int64{word(0): 1}, "false", "true", word(0), 1, false})
	}
	for _, op := range claims {
		run := func() string {
			for col := range columns {
				*c.Word(col, 0), *c.Word(col, 1), *c.Word(col, 2) = 9, 0, 0 // so that it looks at two
			}
			w := op.do(&c, 6, func(*Claims, int64) *int64 { return nil })
			if w == nil {
				return "none"
			}
			return fmt.Sprint((uintptr(unsafe.Pointer(w))-uintptr(unsafe.Pointer(c.Word(0, 0))))/8%(columnBytes/8), " ", *w)
		}
		all = append(all, interruption{op.name, run, map[*int64]int64{c.Word(col, 1): 1}, "2 6", "1 6", c.Word(col, 1), 1, true})
	}
	for _, op := range all {
		var cs *csDescriptor
		var first []uint64
		for _, s := range sequences() {
			if s.name == op.name {
				cs, first = s.cs, armed(s)
			}
		}
		o := order{Start: cs.start, Length: cs.length, CPU: -1}
		telling := *cs
		silent := telling
		silent.length = 0 // nothing is in the sequence
		// do has the operation run, from a state that is always the same, as ordered.
		do := func(o order) (result string) {
			_ = moveTo(0, col)
			c.Open()
			b.base, l.ends.base = b.lease.Load().base, l.ends.lease.Load().base
			op.run() // so that the thread knows where it is
			for col := range columns {
				for i := range 16 {
					*b.lease.Load().word(tierRSEQ, col, i) = 0
				}
			}
			*word(3), *word(4), *word(5) = 2, 8, 9 // a stack
			for i := range logWords {
				*ends(i) = 0
			}
			*ends(logHead) = 2
			_ = binary.Write(&at{orders, 0}, binary.NativeEndian, o)
			unix.RawSyscall(unix.SYS_TGKILL, uintptr(unix.Getpid()), uintptr(unix.Gettid()), uintptr(unix.SIGUSR1))
			return op.run()
		}
		// The way through is told from where it has seen that it is armed: whoever looks on takes that away.
		*cs = silent
		behind := first[len(first)-1]
		do(order{Start: behind, Length: o.Start + o.Length - behind, CPU: -1})
		var path answer
		_ = binary.Read(&at{orders, answerAt}, binary.NativeEndian, &path)
		way := append(first[:len(first)-1], path[:slices.Index(path[:], 0)]...)
		if arg == "false" {
			*cs = telling
		}
		stops, wrong := 0, 0
		for _, o.At = range way {
			o.CPU, o.Change = -1, [4]change{}
			n := 0
			for w, v := range op.other {
				o.Change[n] = change{uint64(uintptr(unsafe.Pointer(w))), uint64(v)}
				n++
			}
			if got := do(o); got != op.want || *op.word != op.value {
				wrong++
			}
			do(order{Start: o.Start, Length: o.Length, At: o.At, CPU: -1}) // what it stores when nobody comes in between
			undisturbed := *op.word
			o.CPU, o.Change = int64(cpus[1]), [4]change{}
			if got := do(o); op.moved != "" && got != op.moved || *op.word == undisturbed {
				wrong++
			}
			o.CPU, o.Change = -1, shut
			if do(o); *op.word == undisturbed && !op.open {
				wrong++
			}
			stops += 3
		}
		fmt.Printf("%s stopped %d times, %d wrong\n", op.name, stops, wrong)
	}
}
