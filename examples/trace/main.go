// Command trace shows a program that is traced while it works: goroutines serve made-up requests
// and emit events, a consumer takes the events out meanwhile, and prints the first of them and what
// there was in all. The package that it uses is in the folder tracer, and is of use elsewhere.
//
//	go run ./examples/trace [-goroutines 4] [-time 200ms] [-buffer 1048576] [-n 12] [-json]
//
// The exit status is 2 for wrong arguments and 1 when writing fails.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/quiesce-go/quiesce/examples/trace/tracer"
)

const usage = `usage: trace [-goroutines n] [-time d] [-buffer bytes] [-n lines] [-json]

  -goroutines n   how many serve requests (4)
  -time d         for how long (200ms)
  -buffer bytes   of each CPU; with a small one, events are lost (1048576)
  -n lines        how many entries are printed; -1: all (12)
  -json           print JSON, an object a line
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings is what the flags say.
type settings struct {
	goroutines int
	time       time.Duration
	buffer     int
	lines      int
	json       bool
}

// run carries out the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "trace: %v\n\n%s", err, usage)
		return 2
	}
	p := &printer{w: stdout, left: s.lines, json: s.json, counts: map[string]uint64{}}
	if err := s.trace(p); err != nil {
		fmt.Fprintln(stderr, "trace:", err)
		return 1
	}
	return 0
}

func parse(args []string) (settings, error) {
	s := settings{goroutines: 4, time: 200 * time.Millisecond, buffer: 1 << 20, lines: 12}
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.goroutines, "goroutines", s.goroutines, "")
	flags.DurationVar(&s.time, "time", s.time, "")
	flags.IntVar(&s.buffer, "buffer", s.buffer, "")
	flags.IntVar(&s.lines, "n", s.lines, "")
	flags.BoolVar(&s.json, "json", s.json, "")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.goroutines < 1 || s.time < 0:
		return s, errors.New("-goroutines has to be above 0, and -time not below")
	case s.buffer < 1 || s.buffer > 1<<24:
		return s, errors.New("-buffer has to be from 1 to 16777216")
	}
	return s, nil
}

// The events of the server.
type (
	begin struct {
		ID   uint64      `json:"id"`
		Path tracer.Text `json:"path"`
	}
	end struct {
		ID     uint64 `json:"id"`
		Status uint16 `json:"status"`
		Sum    uint32 `json:"sum"`
	}
)

// server serves requests, which are made up, and answers, which are checksums.
type server struct {
	last  atomic.Uint64 // number of a request
	begin *tracer.Event[begin]
	end   *tracer.Event[end]
}

var paths = [...]tracer.Text{tracer.MakeText("/"), tracer.MakeText("/index.html"), tracer.MakeText("/favicon.ico")}

func (s *server) serve(body []byte) {
	id := s.last.Add(1)
	s.begin.Emit(begin{ID: id, Path: paths[id%uint64(len(paths))]})
	s.end.Emit(end{ID: id, Status: 200, Sum: crc32.ChecksumIEEE(body)})
}

// trace has a server traced, and the trace printed.
func (s settings) trace(p *printer) error {
	t := tracer.New(s.buffer)
	srv := &server{begin: tracer.NewEvent[begin](t, "request_begin"), end: tracer.NewEvent[end](t, "request_end")}

	// The consumer goes on until all goroutines are done.
	ctx, done := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() { failed <- t.Consume(ctx, time.Millisecond, p.entry) }()

	stop := time.Now().Add(s.time)
	var wg sync.WaitGroup
	for range s.goroutines {
		wg.Go(func() {
			body := make([]byte, 256<<10)
			for {
				srv.serve(body)
				if time.Now().After(stop) {
					return
				}
			}
		})
	}
	wg.Wait()
	done()
	if err := <-failed; err != nil {
		return err
	}
	return p.summary(2*srv.last.Load(), t.Lost())
}

// A printer is the reader of a trace.
type printer struct {
	w      io.Writer
	json   bool
	left   int // how many entries it still prints; below 0: all
	counts map[string]uint64
}

// entry counts e, and prints it if it is one of the first.
func (p *printer) entry(e tracer.Entry) error {
	p.counts[e.Event]++
	if p.left == 0 {
		return nil
	}
	p.left--
	if p.json {
		return json.NewEncoder(p.w).Encode(e)
	}
	_, err := fmt.Fprintln(p.w, e)
	return err
}

// summary prints how many entries there were of each event.
func (p *printer) summary(emitted, lost uint64) error {
	if p.json {
		return json.NewEncoder(p.w).Encode(struct {
			Entries map[string]uint64 `json:"entries"`
			Emitted uint64            `json:"emitted"`
			Lost    uint64            `json:"lost"`
		}{p.counts, emitted, lost})
	}
	table := tabwriter.NewWriter(p.w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "\nentries\tof event\n")
	for _, name := range slices.Sorted(maps.Keys(p.counts)) {
		fmt.Fprintf(table, "%d\t%s\n", p.counts[name], name)
	}
	fmt.Fprintf(table, "\n%d events emitted, %d of them lost\n", emitted, lost)
	return table.Flush()
}
