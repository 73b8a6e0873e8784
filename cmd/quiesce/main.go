// Command quiesce tells what this machine offers to programs that use the
// module, and whether the module keeps its promises here.
//
//	quiesce info          which fast paths there are, and why one is missing
//	quiesce info -json    the same as one JSON object
//	quiesce torture       whether grace periods wait for every reader
//
// The exit status of torture is 1 when it found a fault or was interrupted, and
// its seed is part of the report. A build with the tag quiesce_mutant can be
// given a fault on purpose, which torture has to find:
//
//	go run -tags quiesce_mutant ./cmd/quiesce torture -mutant join
//
// Of every command the exit status is 2 for wrong arguments and 1 when writing
// fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage: quiesce info [-json]
       quiesce torture [-time d] [-seed n] [-tier t] [-readers k] [-sleep d]
                       [-calm] [-debug] [-lazy d] [-pending n] [-patience d]
                       [-mutant m]

info tells how per-CPU data is updated here, how a CPU number is read, whether
restartable sequences and asymmetric fences work, and if not, why and what would
help. It speaks for programs that are built as this one is: one that uses cgo
shares restartable sequences with its libc.

torture has readers of all kinds find objects, and updaters free them in all
ways, and fails if a section meets one that it must not, if anything is lost,
runs twice or does not end.

  -time d      how long, 0 for ever (10s)
  -seed n      chooses what each goroutine does, as in the report that said so
  -tier t      how per-CPU data is updated: rseq, pinned, shared, or all that
               work here in turn (all)
  -readers k   the sections: reader, guard or both (both)
  -sleep d     how long a section sleeps at most (20ms)
  -calm        no signals, collections and changes of GOMAXPROCS
  -debug, -lazy d, -pending n
               with a Domain that has WithDebug, WithLazy, WithMaxPending
  -patience d  for how long an operation may take before it counts as stuck (30s)
  -mutant m    has the engine make a mistake, in a build with -tags quiesce_mutant:
               earlyfinish, gpbarrier, immortal, join, lockedcall,
               lockedregister, lostbatch, nestrefresh, nodeadlock, nofence,
               noflip, onephase, skipslot, or noedge with -race
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run carries out the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return misuse(stderr, "which command?")
	}
	switch args[0] {
	case "info":
		return info(args[1:], stdout, stderr)
	case "torture":
		return torture(args[1:], stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	return misuse(stderr, "unknown command %q", args[0])
}

// misuse says what is wrong with the arguments and returns the exit status.
func misuse(stderr io.Writer, format string, args ...any) int {
	fmt.Fprintf(stderr, "quiesce: "+format+"\n\n%s", append(args, usage)...)
	return 2
}

// info carries out the command info and returns the exit status.
func info(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("info", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		return misuse(stderr, "info: %v", err)
	case flags.NArg() > 0:
		return misuse(stderr, "info: unexpected argument %q", flags.Arg(0))
	}

	write := writeText
	if *asJSON {
		write = writeJSON
	}
	if err := write(stdout, gather()); err != nil {
		fmt.Fprintln(stderr, "quiesce:", err)
		return 1
	}
	return 0
}
