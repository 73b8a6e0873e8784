package tracer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/examples/trace/tracer"
)

// A request event, a consumer that prints it, and one event too many.
func Example() {
	type request struct {
		ID     uint64      `json:"id"`
		Path   tracer.Text `json:"path"`
		Status uint16      `json:"status"`
	}
	trace := tracer.New(1 << 12)
	begin := tracer.NewEvent[request](trace, "request_begin")
	end := tracer.NewEvent[request](trace, "request_end")

	begin.Emit(request{ID: 7, Path: tracer.MakeText("/index.html")})
	end.Emit(request{ID: 7, Path: tracer.MakeText("/index.html"), Status: 200})
	end.Switch(false)
	end.Emit(request{ID: 8})

	for e := range trace.Entries() {
		value, _ := json.Marshal(e.Value)
		fmt.Printf("%s %+v\n%s\n", e.Event, e.Value, value)
	}
	fmt.Println(trace.Lost(), "lost")
	// Output:
	// request_begin {ID:7 Path:/index.html Status:0}
	// {"id":7,"path":"/index.html","status":0}
	// request_end {ID:7 Path:/index.html Status:200}
	// {"id":7,"path":"/index.html","status":200}
	// 0 lost
}

type point struct {
	Writer int32
	N      uint64
	Nested struct {
		F [2]float64
		B bool
	}
}

func pointOf(writer int32, n uint64) (p point) {
	p.Writer, p.N = writer, n
	p.Nested.F = [2]float64{float64(n), -float64(n)}
	p.Nested.B = n%2 == 0
	return p
}

// TestConsume has goroutines emit events of two types while a consumer takes them: what was emitted
// comes once, as it was, each goroutine's events in their order, and what did not fit is counted,
// in the entries too.
func TestConsume(t *testing.T) {
	const writers = 4
	n := 50_000
	if testing.Short() {
		n = 5_000
	}
	trace := tracer.New(1 << 14)
	points := tracer.NewEvent[point](trace, "point")
	ticks := tracer.NewEvent[struct{}](trace, "tick")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	start := time.Now()
	var emitted [writers]int
	var ticked, refused atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range n {
				if points.Emit(pointOf(int32(w), uint64(i))) {
					emitted[w]++
				} else {
					refused.Add(1)
					runtime.Gosched()
				}
				if i%16 == 0 {
					if ticks.Emit(struct{}{}) {
						ticked.Add(1)
					} else {
						refused.Add(1)
					}
				}
			}
		})
	}
	go func() { wg.Wait(); stop() }()

	var got [writers]map[uint64]bool
	for w := range got {
		got[w] = map[uint64]bool{}
	}
	gotTicks, lost := int64(0), uint64(0)
	err := trace.Consume(ctx, 100*time.Microsecond, func(e tracer.Entry) error {
		if e.Time.Before(start.Add(-time.Second)) || e.Time.After(time.Now().Add(time.Second)) {
			return fmt.Errorf("%v is not now", e.Time)
		}
		switch v := e.Value.(type) {
		case point:
			if e.Event != "point" || v != pointOf(v.Writer, v.N) {
				return fmt.Errorf("event %s is %+v", e.Event, v)
			}
			if got[v.Writer][v.N] {
				return fmt.Errorf("%+v came twice", v)
			}
			got[v.Writer][v.N] = true
		case struct{}:
			if e.Event != "tick" {
				return fmt.Errorf("event %s is empty", e.Event)
			}
			gotTicks++
		case tracer.Lost:
			if e.Event != tracer.LostEvent {
				return fmt.Errorf("event %s is %+v", e.Event, v)
			}
			lost += v.Count
		default:
			return fmt.Errorf("event %s is a %T", e.Event, v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		if len(got[w]) != emitted[w] {
			t.Errorf("writer %d emitted %d events, %d came", w, emitted[w], len(got[w]))
		}
	}
	if gotTicks != ticked.Load() || lost != trace.Lost() || lost != uint64(refused.Load()) {
		t.Errorf("%d of %d ticks; %d did not fit, %d lost, %d by the entries", gotTicks, ticked.Load(), refused.Load(), trace.Lost(), lost)
	}
	t.Logf("%d ticks, %d lost", gotTicks, lost)
}

// TestConsume_Error: an error of the sink ends Consume, and the rest stays.
func TestConsume_Error(t *testing.T) {
	trace := tracer.New(1 << 12)
	e := tracer.NewEvent[uint32](trace, "n")
	for i := range uint32(5) {
		e.Emit(i)
	}
	full := errors.New("disk full")
	if err := trace.Consume(context.Background(), time.Hour, func(tracer.Entry) error { return full }); err != full {
		t.Errorf("%v", err)
	}
	left := 0
	for range trace.Entries() {
		left++
	}
	if left != 4 {
		t.Errorf("%d events are left, want 4", left)
	}
}

// TestEntries_Lost: a trace tells once of what is missing from it.
func TestEntries_Lost(t *testing.T) {
	trace := tracer.New(256)
	e := tracer.NewEvent[[300]byte](trace, "large")
	for range 3 {
		if e.Emit([300]byte{}) {
			t.Fatal("300 bytes fit into 256")
		}
	}
	var all []tracer.Entry
	for range 2 {
		for e := range trace.Entries() {
			all = append(all, e)
		}
	}
	if len(all) != 1 || all[0].Event != tracer.LostEvent || all[0].Value != (tracer.Lost{Count: 3}) || all[0].CPU != -1 || trace.Lost() != 3 {
		t.Errorf("%v, %d lost", all, trace.Lost())
	}
}

func TestNewEvent_Pointers(t *testing.T) {
	trace := tracer.New(256)
	for want, f := range map[string]func(){
		"string is a string":          func() { tracer.NewEvent[string](trace, "x") },
		"[2]*int[] is a *int":         func() { tracer.NewEvent[[2]*int](trace, "x") },
		".B.C is a map[int]int":       func() { tracer.NewEvent[struct{ B struct{ C map[int]int } }](trace, "x") },
		".Err is a error":             func() { tracer.NewEvent[struct{ Err error }](trace, "x") },
		"[]uint8 is a []uint8":        func() { tracer.NewEvent[[]byte](trace, "x") },
		"tracer: NewEvent of a type ": func() { tracer.NewEvent[func()](trace, "x") },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, want) {
					t.Errorf("panic %q, want %q in it", p, want)
				}
			}()
			f()
		}()
	}
}

func TestEmit_NoAllocation(t *testing.T) {
	trace := tracer.New(1 << 12)
	e := tracer.NewEvent[point](trace, "point")
	e.Emit(point{})
	if n := testing.AllocsPerRun(1000, func() { e.Emit(pointOf(1, 2)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEntry_Forms(t *testing.T) {
	e := tracer.Entry{Time: time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC), CPU: 3, Event: "open", Value: struct {
		Path tracer.Text `json:"path"`
		FD   int32       `json:"fd"`
	}{tracer.MakeText("/etc/a-path-that-is-longer-than-a-Text"), 7}}
	if got, want := e.String(), "03:04:05.000006789 cpu 3 open {Path:/etc/a-path-that-is-longer-than- FD:7}"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	got, err := json.Marshal(e)
	if want := `{"time":"2026-01-02T03:04:05.000006789Z","cpu":3,"event":"open","value":{"path":"/etc/a-path-that-is-longer-than-","fd":7}}`; string(got) != want || err != nil {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	if got := tracer.MakeText("0123456789012345678901234567890é").String(); got != "0123456789012345678901234567890" {
		t.Errorf("%q", got)
	}
}
