package posix_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/examples/timers/posix"
	"github.com/quiesce-go/quiesce/rcu"
)

// eachTwin runs fn for a Table of each kind, in a bubble in which time passes when everybody waits.
// When fn has returned the Table and its Domain are closed, and no goroutine may be left then:
// synctest fails if one is.
func eachTwin(t *testing.T, fn func(t *testing.T, tab *posix.Table, d *rcu.Domain)) {
	for _, name := range []string{"locked", "rcu"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := rcu.New()
				tab := posix.NewLocked()
				if name == "rcu" {
					tab = posix.New(d)
				}
				fn(t, tab, d)
				if err := tab.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if n := tab.Len(); n != 0 {
					t.Errorf("%d timers in a closed Table", n)
				}
				if err := d.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if err := tab.Close(context.Background()); err != nil {
					t.Errorf("second Close: %v", err)
				}
			})
		})
	}
}

// A user is an Owner or a Thread.
type user interface {
	Create(posix.Clock, func()) (posix.ID, error)
	Settime(id posix.ID, value, interval time.Duration) error
	SettimeAt(id posix.ID, at time.Time, interval time.Duration) error
	Gettime(id posix.ID) (remaining, interval time.Duration, err error)
	Overruns(id posix.ID) (int, error)
	Delete(id posix.ID) error
}

func create(t *testing.T, u user, clock posix.Clock, callback func()) posix.ID {
	t.Helper()
	id, err := u.Create(clock, callback)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func wantTime(t *testing.T, u user, id posix.ID, remaining, interval time.Duration) {
	t.Helper()
	r, i, err := u.Gettime(id)
	if r != remaining || i != interval || err != nil {
		t.Errorf("Gettime: %v, %v, %v; want %v, %v", r, i, err, remaining, interval)
	}
}

func wantOverruns(t *testing.T, u user, id posix.ID, want int) {
	t.Helper()
	if n, err := u.Overruns(id); n != want || err != nil {
		t.Errorf("Overruns: %d, %v; want %d", n, err, want)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (want == nil) != (err == nil) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// lookups makes each call that looks an id up, and returns their errors by name.
func lookups(u user, id posix.ID) map[string]error {
	_, _, get := u.Gettime(id)
	_, over := u.Overruns(id)
	return map[string]error{
		"Gettime":   get,
		"Overruns":  over,
		"Settime":   u.Settime(id, time.Second, 0),
		"SettimeAt": u.SettimeAt(id, time.Now(), 0),
		"Delete":    u.Delete(id),
	}
}

func wantNotFound(t *testing.T, what string, u user, id posix.ID) {
	t.Helper()
	for name, err := range lookups(u, id) {
		wantErr(t, what+": "+name, err, posix.ErrNotFound)
	}
}

func TestErrors(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		o, other := tab.NewOwner(), tab.NewOwner()
		th := o.NewThread()
		for _, u := range []user{o, th} {
			_, err := u.Create(posix.Monotonic+1, nil)
			wantErr(t, "Create with a bad clock", err, posix.ErrInvalid)

			id := create(t, u, posix.Monotonic, nil)
			wantErr(t, "Settime", u.Settime(id, time.Hour, time.Minute), nil)
			wantErr(t, "Settime, value -1", u.Settime(id, -1, 0), posix.ErrInvalid)
			wantErr(t, "Settime, interval -1", u.Settime(id, 1, -1), posix.ErrInvalid)
			wantErr(t, "SettimeAt, interval -1", u.SettimeAt(id, time.Now(), -1), posix.ErrInvalid)
			wantNotFound(t, "another owner", other, id)
			wantNotFound(t, "an id that nobody has", u, id+1)
			wantNotFound(t, "no id", u, 0)
			wantNotFound(t, "a negative id", u, -1)
			wantNotFound(t, "an id that is too high", u, math.MaxInt)
			wantTime(t, u, id, time.Hour, time.Minute) // none of that changed it

			wantErr(t, "Delete", u.Delete(id), nil)
			wantNotFound(t, "a deleted timer", u, id)
		}
		// An error that left its section open would have this wait for ever.
		wantErr(t, "Synchronize", d.Synchronize(t.Context()), nil)
		th.Close() // and this would panic
	})
}

func TestCreate_Again(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		tab.SetMaxID(2)
		o := tab.NewOwner()
		a, b := create(t, o, posix.Realtime, nil), create(t, o, posix.Realtime, nil)
		if a != 1 || b != 2 {
			t.Errorf("ids %d and %d, want 1 and 2", a, b)
		}
		for range 2 {
			_, err := o.Create(posix.Realtime, nil)
			wantErr(t, "Create", err, posix.ErrAgain)
		}
		wantErr(t, "Delete", o.Delete(a), nil)
		wantErr(t, "Barrier", d.Barrier(t.Context()), nil)
		if id := create(t, o, posix.Realtime, nil); id != a {
			t.Errorf("id %d, want %d", id, a)
		}
	})
}

func TestOwner_Exit(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		a, b := tab.NewOwner(), tab.NewOwner()
		var as []posix.ID
		for range 100 {
			as = append(as, create(t, a, posix.Monotonic, func() { t.Error("expired") }))
			wantErr(t, "Settime", a.Settime(as[len(as)-1], time.Second, 0), nil)
		}
		id := create(t, b, posix.Monotonic, nil)
		a.Exit()
		for _, id := range as {
			wantNotFound(t, "after Exit", a, id)
		}
		wantTime(t, b, id, 0, 0)
		time.Sleep(2 * time.Second)
	})
}

// Calls that a user of POSIX would make, one after the other, and what Gettime says after each.
func TestGettime(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		for _, clock := range []posix.Clock{posix.Realtime, posix.Monotonic} {
			o := tab.NewOwner()
			id := create(t, o, clock, nil)
			wantTime(t, o, id, 0, 0)
			o.Settime(id, time.Minute, time.Hour)
			wantTime(t, o, id, time.Minute, time.Hour)
			time.Sleep(time.Second)
			wantTime(t, o, id, 59*time.Second, time.Hour)
			time.Sleep(time.Minute)
			wantTime(t, o, id, time.Hour-time.Second, time.Hour)
			o.Settime(id, 0, time.Hour) // disarms, whatever the interval
			wantTime(t, o, id, 0, 0)
			o.Settime(id, time.Minute, 0)
			wantTime(t, o, id, time.Minute, 0)
			o.SettimeAt(id, time.Now().Add(time.Hour), time.Second)
			wantTime(t, o, id, time.Hour, time.Second)
			o.Settime(id, math.MaxInt64, math.MaxInt64)
			wantTime(t, o, id, math.MaxInt64, math.MaxInt64)
			o.SettimeAt(id, time.Time{}, 0)
			wantTime(t, o, id, 0, 0)
			o.SettimeAt(id, time.Now().Add(-5*time.Second), 2*time.Second)
			wantTime(t, o, id, time.Second, 2*time.Second) // not yet acted on
			synctest.Wait()
			wantTime(t, o, id, time.Second, 2*time.Second) // acted on
			wantOverruns(t, o, id, 2)
			o.SettimeAt(id, time.Now().Add(-time.Second), 0)
			wantTime(t, o, id, 1, 0)
			synctest.Wait()
			wantTime(t, o, id, 0, 0)
			wantOverruns(t, o, id, 0)
		}
	})
}

// Only absolute times of Realtime are those of the wall clock.
func TestSettimeAt_Wall(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		o := tab.NewOwner()
		id := create(t, o, posix.Realtime, nil)
		wantErr(t, "SettimeAt", o.SettimeAt(id, time.Now().Round(0).Add(time.Hour), 0), nil)
		wantTime(t, o, id, time.Hour, 0)
		// Before all that can be counted in a Duration: it catches up.
		wantErr(t, "SettimeAt", o.SettimeAt(id, time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Hour), nil)
		synctest.Wait()
		if r, i, err := o.Gettime(id); r <= 0 || r > time.Hour || i != time.Hour || err != nil {
			t.Errorf("Gettime: %v, %v, %v", r, i, err)
		}
	})
}

func TestExpire(t *testing.T) {
	const ms = time.Millisecond
	type call struct {
		at       time.Duration
		overruns int
	}
	for _, test := range []struct {
		name            string
		value, interval time.Duration
		takes           []time.Duration // the callbacks; 0 after the last
		want            []call          // within 100 ms
	}{
		{"once", 10 * ms, 0, nil, []call{{10 * ms, 0}}},
		{"interval", 10 * ms, 20 * ms, nil,
			[]call{{10 * ms, 0}, {30 * ms, 0}, {50 * ms, 0}, {70 * ms, 0}, {90 * ms, 0}}},
		{"no drift", 10 * ms, 20 * ms, []time.Duration{19 * ms, 19 * ms, 19 * ms},
			[]call{{10 * ms, 0}, {30 * ms, 0}, {50 * ms, 0}, {70 * ms, 0}, {90 * ms, 0}}},
		// 20, 30 and 40 pass during the first call: the second is for 20, and has two overruns.
		{"overrun", 10 * ms, 10 * ms, []time.Duration{35 * ms, 54 * ms},
			[]call{{10 * ms, 0}, {45 * ms, 2}, {99 * ms, 4}, {100 * ms, 0}}},
		{"on the dot", 10 * ms, 10 * ms, []time.Duration{10 * ms, 80 * ms},
			[]call{{10 * ms, 0}, {20 * ms, 0}, {100 * ms, 7}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
				o := tab.NewOwner()
				began := time.Now()
				var id posix.ID
				var got []call // callbacks of one timer are ordered
				id = create(t, o, posix.Monotonic, func() {
					n, err := o.Overruns(id)
					wantErr(t, "Overruns", err, nil)
					got = append(got, call{time.Since(began), n})
					if len(got) <= len(test.takes) {
						time.Sleep(test.takes[len(got)-1])
					}
				})
				wantErr(t, "Settime", o.Settime(id, test.value, test.interval), nil)
				time.Sleep(100 * ms)
				synctest.Wait()
				wantErr(t, "Delete", o.Delete(id), nil)
				time.Sleep(time.Second)
				if !slices.Equal(got, test.want) {
					t.Errorf("callbacks %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestOverruns_Max(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		o := tab.NewOwner()
		id := create(t, o, posix.Monotonic, nil)
		o.SettimeAt(id, time.Now().Add(-posix.MaxOverruns-1), 1)
		synctest.Wait()
		wantOverruns(t, o, id, posix.MaxOverruns)
		wantErr(t, "Delete", o.Delete(id), nil) // or it would keep the clock busy
	})
}

// stamps has a callback that notes the times of its calls, since now.
func stamps() (callback func(), at func() []time.Duration) {
	began := time.Now()
	var all []time.Duration // callbacks of one timer are ordered; the test reads them when it has waited
	return func() { all = append(all, time.Since(began)) }, func() []time.Duration { return all }
}

// What a callback does with its own timer.
func TestCallback(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(o *posix.Owner, id posix.ID, n int)
		want []time.Duration
	}{
		{"deletes it", func(o *posix.Owner, id posix.ID, n int) { o.Delete(id) }, []time.Duration{1}},
		{"disarms it", func(o *posix.Owner, id posix.ID, n int) { o.Settime(id, 0, 0) }, []time.Duration{1}},
		{"sets it", func(o *posix.Owner, id posix.ID, n int) {
			if n <= 3 {
				o.Settime(id, time.Duration(n)*5, 0)
			}
		}, []time.Duration{1, 6, 16, 31}},
		{"sets it, and takes longer", func(o *posix.Owner, id posix.ID, n int) {
			if n == 1 {
				o.Settime(id, 5, 7)
				time.Sleep(5 + 7 + 1)
			} else if n == 3 {
				o.Delete(id)
			}
		}, []time.Duration{1, 14, 20}},
		{"ends its goroutine", func(o *posix.Owner, id posix.ID, n int) {
			switch n {
			case 1:
				o.Settime(id, 5, 10)
				time.Sleep(7 * time.Nanosecond)
			case 4:
				o.Delete(id)
			}
			runtime.Goexit()
		}, []time.Duration{1, 8, 16, 26}},
		{"lets the owner exit", func(o *posix.Owner, id posix.ID, n int) { o.Exit() }, []time.Duration{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
				o := tab.NewOwner()
				stamp, at := stamps()
				var id posix.ID
				n := 0
				id = create(t, o, posix.Monotonic, func() {
					stamp()
					n++
					test.call(o, id, n)
				})
				wantErr(t, "Settime", o.Settime(id, 1, 50), nil)
				time.Sleep(45 * time.Nanosecond)
				synctest.Wait()
				if got := at(); !slices.Equal(got, test.want) {
					t.Errorf("callbacks at %v, want %v", got, test.want)
				}
			})
		})
	}
}

// A timer that was deleted while its callback runs is used again when that has returned, not before.
func TestDelete_WhileExpiring(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		o := tab.NewOwner()
		done := false
		id := create(t, o, posix.Monotonic, func() {
			time.Sleep(time.Hour)
			done = true
		})
		look := tab.Find(id)
		wantErr(t, "Settime", o.Settime(id, time.Second, time.Second), nil)
		time.Sleep(time.Minute)
		wantErr(t, "Delete", o.Delete(id), nil)
		wantErr(t, "Barrier", d.Barrier(t.Context()), nil)
		if owned, recyclable := look(); owned || recyclable {
			t.Errorf("owned %v, recyclable %v", owned, recyclable)
		}
		time.Sleep(time.Hour)
		if owned, recyclable := look(); owned || !recyclable || !done {
			t.Errorf("owned %v, recyclable %v, callback returned %v", owned, recyclable, done)
		}
	})
}

// A timer that a lookup has found, and not yet locked, may be deleted, and is not used again.
func TestDelete_BesideLookup(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(*rcu.Domain) *posix.Table
		want bool
	}{{"rcu", posix.New, false}, {"broken", posix.NewBroken, true}} {
		t.Run(test.name, func(t *testing.T) {
			d := rcu.New()
			tab := test.make(d)
			tab.SetMaxID(1)
			o := tab.NewOwner()
			id := create(t, o, posix.Monotonic, nil)

			section := d.ReadLock()
			look := tab.Find(id)
			wantErr(t, "Delete", o.Delete(id), nil)
			wantNotFound(t, "deleted", o, id)
			if owned, recyclable := look(); owned || recyclable != test.want {
				t.Errorf("owned %v, recyclable %v; want false, %v", owned, recyclable, test.want)
			}
			_, err := o.Create(posix.Monotonic, nil)
			if taken := err == posix.ErrAgain; taken == test.want {
				t.Errorf("Create: %v", err)
			}
			section.Unlock()

			wantErr(t, "Barrier", d.Barrier(t.Context()), nil)
			if !test.want {
				if owned, recyclable := look(); owned || !recyclable {
					t.Errorf("owned %v, recyclable %v; want false, true", owned, recyclable)
				}
			}
			wantErr(t, "Close", tab.Close(t.Context()), nil)
			wantErr(t, "Close", d.Close(t.Context()), nil)
		})
	}
}

func TestClose(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		o := tab.NewOwner()
		armed := create(t, o, posix.Monotonic, func() { t.Error("expired after Close") })
		o.Settime(armed, time.Minute, time.Minute)
		release := make(chan struct{})
		slow := create(t, o, posix.Monotonic, func() { <-release })
		o.Settime(slow, 1, 0)
		time.Sleep(time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, "Close", tab.Close(ctx), context.DeadlineExceeded)
		_, err := o.Create(posix.Monotonic, nil)
		wantErr(t, "Create", err, posix.ErrClosed)
		wantNotFound(t, "closed", o, armed)
		wantNotFound(t, "closed", o, slow)
		close(release)
		wantErr(t, "Close", tab.Close(t.Context()), nil)
		wantErr(t, "Close", tab.Close(t.Context()), nil)
		time.Sleep(time.Hour)
	})
}

func TestClose_Empty(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, "Close", tab.Close(canceled), nil) // there is nothing to wait for
	})
}

func TestGettime_Allocs(t *testing.T) {
	eachTwin(t, func(t *testing.T, tab *posix.Table, d *rcu.Domain) {
		o := tab.NewOwner()
		th := o.NewThread()
		defer th.Close()
		id := create(t, o, posix.Monotonic, nil)
		o.Settime(id, time.Hour, time.Hour)
		for name, fn := range map[string]func(){
			"Owner":          func() { o.Gettime(id) },
			"Thread":         func() { th.Gettime(id) },
			"another's":      func() { th.Gettime(id + 1) },
			"Settime":        func() { th.Settime(id, time.Hour, 0) },
			"Thread, failed": func() { th.Settime(id, -1, 0) },
		} {
			if n := testing.AllocsPerRun(100, fn); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}

func TestTimerSize(t *testing.T) {
	if bits.UintSize == 64 && posix.TimerSize != posix.CacheLine {
		t.Errorf("a timer has %d bytes, so that two of them share a line", posix.TimerSize)
	}
}

func Example() {
	domain := rcu.New()
	table := posix.New(domain)
	owner := table.NewOwner()

	expired := make(chan struct{})
	id, _ := owner.Create(posix.Monotonic, func() { close(expired) })
	_ = owner.Settime(id, 10*time.Millisecond, 0)
	<-expired
	fmt.Println(owner.Gettime(id))
	fmt.Println(table.NewOwner().Delete(id))
	fmt.Println(owner.Delete(id))

	_ = table.Close(context.Background())
	_ = domain.Close(context.Background())
	// Output:
	// 0s 0s <nil>
	// posix: no such timer
	// <nil>
}
