// Command quiesce tells what this machine offers to programs that use the
// module.
//
//	quiesce info          which fast paths there are, and why one is missing
//	quiesce info -json    the same as one JSON object
//
// The exit status is 2 for wrong arguments and 1 when writing fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage: quiesce info [-json]

info tells how per-CPU data is updated here, how a CPU number is read, whether
restartable sequences and asymmetric fences work, and if not, why and what would
help. It speaks for programs that are built as this one is: one that uses cgo
shares restartable sequences with its libc.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run carries out the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	misuse := func(format string, args ...any) int {
		fmt.Fprintf(stderr, "quiesce: "+format+"\n\n%s", append(args, usage)...)
		return 2
	}
	if len(args) == 0 {
		return misuse("which command?")
	}
	switch args[0] {
	case "info":
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	default:
		return misuse("unknown command %q", args[0])
	}

	flags := flag.NewFlagSet("info", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "")
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		return misuse("info: %v", err)
	case flags.NArg() > 0:
		return misuse("info: unexpected argument %q", flags.Arg(0))
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
