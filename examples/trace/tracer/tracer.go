// Package tracer traces a program from inside, in the shape of LTTng's user-space tracer: events
// have types, an event is recorded into a buffer of its own CPU by code that never waits, and a
// consumer takes the events of all CPUs out in the order of their times while others go on.
//
//	type request struct {
//		ID     uint64
//		Status uint16
//	}
//
//	var (
//		trace = tracer.New(1 << 20)
//		done  = tracer.NewEvent[request](trace, "request_done")
//	)
//
//	done.Emit(request{ID: 7, Status: 200})
//
//	for e := range trace.Entries() {
//		fmt.Println(e) // or json.Marshal(e)
//	}
//
// What does not fit because the consumer is behind is lost, and counted: a trace says itself what
// is missing from it, by an entry with the name [LostEvent].
//
// Programs whose events are logged, not traced, have [log/slog]. This package is for events so
// frequent that looking at the clock is most of what they may cost.
//
// # Costs
//
// Emit takes about twice as long as reading the cycle counter, and does not allocate. An event
// takes 16 bytes of a buffer and the size of its type, rounded up to 8. An entry that is read takes
// some allocations; none of that slows Emit down.
package tracer

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/percpu"
)

// A Tracer has the buffers of its events. It is made by New, may be used by any number of
// goroutines, and must not be copied.
type Tracer struct {
	ring  *percpu.Ring
	start instant

	mu     sync.Mutex
	told   uint64                      // lost events of which there is an entry; under mu
	events atomic.Pointer[[]eventType] // by number; a new slice is stored for each event, under mu
}

// An eventType is what a reader has to know of an Event[T].
type eventType struct {
	name   string
	decode func(payload []byte) any
}

// New returns a Tracer with a buffer of bytesPerCPU bytes, rounded up to a power of two, for each
// CPU. It panics for a size that percpu.NewRing does not accept.
func New(bytesPerCPU int) *Tracer {
	t := &Tracer{ring: percpu.NewRing(bytesPerCPU), start: now()}
	t.events.Store(new([]eventType))
	return t
}

// An Event is a kind of events: a name, and the type of what is recorded with it. It is made by
// NewEvent and may be used by any number of goroutines.
type Event[T any] struct {
	ring   *percpu.Ring
	number uint32
	off    atomic.Bool
}

// NewEvent returns an Event of t that is recorded with a T. A T is copied as it lies in memory, so
// it must not have pointers (strings, slices and the like are pointers; Text is a string without):
// NewEvent panics if it has, with the field's name. Events with the same name are different events.
func NewEvent[T any](t *Tracer, name string) *Event[T] {
	if where := pointerIn[T](); where != "" {
		panic("tracer: NewEvent of a type with a pointer: " + where)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.events.Load()
	all := append(old[:len(old):len(old)], eventType{name, decode[T]})
	t.events.Store(&all)
	return &Event[T]{ring: t.ring, number: uint32(len(old))}
}

// Emit records the event with v, the time and the CPU, and reports whether it is in the trace: it
// is not if there is no room, or if the event is switched off. It never waits for a reader and does
// not allocate. It synchronizes before the step of a loop over Entries that gets the entry.
func (e *Event[T]) Emit(v T) bool {
	return !e.off.Load() && e.ring.Write(e.number, bytesOf(&v))
}

// Switch switches the event on or off. A new one is on. An event that is off costs a load.
func (e *Event[T]) Switch(on bool) { e.off.Store(!on) }

// An Entry is an event as a reader gets it. Its JSON form has the names below.
type Entry struct {
	Time  time.Time `json:"time"`
	CPU   int       `json:"cpu"` // -1 in a LostEvent
	Event string    `json:"event"`
	Value any       `json:"value"` // the T of an Event[T], or a Lost
}

// LostEvent is the name of entries that say that events were lost before their time. Their Value is
// a Lost.
const LostEvent = "lost"

// Lost says how many events were lost since there was last an entry of it.
type Lost struct{ Count uint64 }

// String returns e as a line of text.
func (e Entry) String() string {
	return fmt.Sprintf("%s cpu %d %s %+v", e.Time.Format("15:04:05.000000000"), e.CPU, e.Event, e.Value)
}

// Lost returns how many events have been lost.
func (t *Tracer) Lost() uint64 { return t.ring.Dropped() }

// Entries returns an iterator that takes events out of the buffers: those that were there when the
// loop began, in the order of their times, and then an entry if events were lost. A loop that is
// left early leaves the rest. Several may run at once; each event comes in one.
func (t *Tracer) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		end := now()
		for r := range t.ring.Records() {
			// Events are only added: an event that is recorded is there. Pairs with NewEvent.
			event := (*t.events.Load())[r.Event]
			if !yield(Entry{t.start.wall(r.Time, end), r.CPU, event.name, event.decode(r.Payload)}) {
				return
			}
		}
		if n := t.tell(); n > 0 {
			yield(Entry{end.time, -1, LostEvent, Lost{n}})
		}
	}
}

// tell returns how many events have been lost since it was last called.
func (t *Tracer) tell() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.ring.Dropped() - t.told
	t.told += n
	return n
}

// Consume hands all entries to sink, as they come, in a loop every so often, until ctx is done;
// then once more, so that what was recorded before is not left. It returns nil, or the first error
// of sink, whose entry is taken.
func (t *Tracer) Consume(ctx context.Context, every time.Duration, sink func(Entry) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		over := ctx.Err() != nil
		for e := range t.Entries() {
			if err := sink(e); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// An instant is a moment on both clocks.
type instant struct {
	cycles uint64
	time   time.Time
}

func now() instant { return instant{asm.CyclesOrdered(), time.Now()} }

// wall returns what time it was when asm.Cycles was c, as the clocks went from i to j.
func (i instant) wall(c uint64, j instant) time.Time {
	if j.cycles <= i.cycles {
		return j.time
	}
	share := float64(int64(c-i.cycles)) / float64(j.cycles-i.cycles)
	return i.time.Add(time.Duration(share * float64(j.time.Sub(i.time))))
}

// Text is a string of up to 32 bytes that can be recorded.
type Text [32]byte

// MakeText returns the beginning of s.
func MakeText(s string) (t Text) {
	copy(t[:], s)
	return t
}

// String returns t up to its first zero byte.
func (t Text) String() string {
	s, _, _ := strings.Cut(string(t[:]), "\x00")
	return strings.ToValidUTF8(s, "")
}

// MarshalJSON returns t as a JSON string.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }
