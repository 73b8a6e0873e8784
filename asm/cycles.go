package asm

// Cycles returns a cycle counter: RDTSC on amd64, CNTVCT_EL0 on arm64 (which
// counts at a fixed frequency, often far below the clock's), the monotonic
// clock in nanoseconds elsewhere. The processor may execute it before earlier
// instructions have finished. Differences are meaningful, values are not.
// It costs an assembly call and the instruction, and never allocates.
func Cycles() uint64 { return cycles() }

// CyclesOrdered is Cycles, not executed before every earlier load has its value
// and every earlier instruction has finished: LFENCE and RDTSC on amd64, ISB
// and MRS on arm64. It is no fence for stores.
func CyclesOrdered() uint64 { return cyclesOrdered() }

// Pause tells the processor that the caller spins: PAUSE on amd64, ISB on
// arm64 (where YIELD does nothing on most cores), nothing elsewhere. It orders
// no memory. One Pause takes between 10 and 150 cycles.
func Pause() { pause() }
