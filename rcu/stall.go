package rcu

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const defaultStallTimeout = 10 * time.Second

// WithStallTimeout sets after how long a grace period that somebody waits for is reported as stalled: once,
// with what it waits for, through [WithStallHandler] or [WithLogger]. The default is 10 seconds; with 0 or
// less there are no reports.
func WithStallTimeout(t time.Duration) Option {
	return func(d *Domain) { d.stallTimeout = t }
}

// WithStallHandler has f called with the report of each grace period that is stalled, in place of a warning
// in the log. It is called by a goroutine of its own, possibly by several at once, and may block, wait for the
// Domain, or end the section that it is told of.
func WithStallHandler(f func(Stall)) Option {
	return func(d *Domain) { d.stallHandler = f }
}

// A Stall says what a grace period has been waiting for since it began. It is a value of its own, and
// String has all of it as text.
type Stall struct {
	GracePeriod uint64        // its number
	Waited      time.Duration // since it began
	Pending     uint64        // callbacks

	// Sections are those that it waits for, the oldest first: of Readers, and of Guards too in a Domain made
	// with [WithDebug].
	Sections []StalledSection

	// Phases are the two that Guards belong to. What is awaited of those that are not counted but have a word
	// is in the one that is not current.
	Phases [2]StalledPhase
}

// A StalledSection is a section that a [Stall] is about. Stacks are text, a line for each function and
// one for its file and line.
type StalledSection struct {
	Reader  bool   // it is of a Reader, else of a Guard
	Created string // where the Reader was made; with WithDebug the whole stack, else the top of it

	// With WithDebug where the section began, in which goroutine; else "" and 0.
	Began     string
	Goroutine uint64

	// For is how long the section has lasted, without WithDebug at least.
	For time.Duration
}

// A StalledPhase is what a [Stall] knows of the Guards that began in one phase.
type StalledPhase struct {
	Guards  int64 // open
	Awaited bool  // the grace period waits for those of them that began before it
	Current bool  // new ones begin in it
}

// String returns the report as text of several lines. Sections from the same place are counted together.
func (s Stall) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rcu: grace period %d has not ended for %v, %d callbacks are pending", s.GracePeriod, s.Waited, s.Pending)
	count := make(map[StalledSection]int)
	guards := 0
	for _, sec := range s.Sections {
		count[sec.place()]++
		if !sec.Reader {
			guards++
		}
	}
	for _, sec := range s.Sections {
		n := count[sec.place()]
		if n == 0 {
			continue
		}
		delete(count, sec.place())
		kind := "Guard"
		if sec.Reader {
			kind = "Reader"
		}
		fmt.Fprintf(&b, "\nit waits for %d %s", n, kind)
		if n > 1 {
			b.WriteByte('s')
		}
		if sec.Created != "" {
			fmt.Fprintf(&b, " made at\n%s", indent(sec.Created))
		}
		if sec.Began != "" {
			which := ""
			if n > 1 {
				which = "the oldest of them "
			}
			fmt.Fprintf(&b, "\n%sin a section of goroutine %d, for %v, begun at\n%s", which, sec.Goroutine, sec.For, indent(sec.Began))
		}
	}
	for i, p := range s.Phases {
		if p.Guards == 0 {
			continue
		}
		fmt.Fprintf(&b, "\nopen Guards of phase %d: %d", i, p.Guards)
		switch {
		case p.Awaited && p.Current:
			b.WriteString(", new ones among them")
		case !p.Awaited:
			b.WriteString(", which it does not wait for")
		}
		if p.Awaited && guards == 0 {
			b.WriteString(" (WithDebug says where they began)")
		}
	}
	return b.String()
}

// place is what sections have in common that are counted together.
func (s StalledSection) place() StalledSection {
	return StalledSection{Reader: s.Reader, Created: s.Created, Began: s.Began}
}

func indent(s string) string { return "\t" + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n\t") }

// checkStall reports the grace period in progress, if it is time to.
func (d *Domain) checkStall() {
	if d.stallTimeout <= 0 {
		return
	}
	gp := &d.gp
	gp.mu.Lock()
	defer gp.mu.Unlock()
	if gp.reported || d.done.Load() == d.newest() {
		return
	}
	waited := time.Since(gp.start)
	if waited < d.stallTimeout {
		return
	}
	gp.reported = mutant != mutantNagging
	gp.stalls.Add(1)
	// It must not hold up the driver, who holds a role and whom the handler may want to wait for.
	go d.report(d.stallLocked(waited))
}

func (d *Domain) report(s Stall) {
	if d.stallHandler != nil {
		d.stallHandler(s)
		return
	}
	d.logger().Warn("rcu: a grace period is stalled", slog.Duration("waited", s.Waited), slog.Uint64("pending", s.Pending),
		slog.String("report", s.String()))
}

// stallLocked returns what the grace period in progress waits for. The caller holds gp.mu.
func (d *Domain) stallLocked(waited time.Duration) Stall {
	gp := &d.gp
	n := d.newest()
	s := Stall{GracePeriod: n, Waited: waited, Pending: uint64(d.pending())}
	text := make(stackTexts)
	for _, rec := range gp.left {
		seen := atomic.LoadUint64(&rec.seen)
		sec := StalledSection{Reader: true, Created: text.of(rec.created()), For: waited}
		d.debug.describe(rec, &sec, text)
		// The record may have got another handle meanwhile. If it still shows the same, it had none when
		// its stack was read.
		if seen != 0 && seen < n && atomic.LoadUint64(&rec.seen) == seen {
			s.Sections = append(s.Sections, sec)
		}
	}
	cur, _ := d.current()
	var shown [2]int64 // by those before the grace period, and by others
	for w := range d.guards.allWords {
		switch {
		case atomic.LoadInt64(w) == 0:
		case passedWord(w, n):
			shown[1]++
		default:
			shown[0]++
		}
	}
	for i := range d.guards.phases {
		p := &d.guards.phases[i]
		e := p.Sum(ends)
		s.Phases[i] = StalledPhase{Guards: p.Sum(begins) - e, Awaited: p == gp.idle || p == gp.cur, Current: p == cur}
		if p == cur {
			s.Phases[i].Guards += shown[1]
		} else if shown[0] > 0 {
			s.Phases[i].Guards += shown[0]
			s.Phases[i].Awaited = true
		}
		if s.Phases[i].Awaited {
			s.Sections = append(s.Sections, d.debug.guards(i, now()-int64(waited), text)...)
		}
	}
	slices.SortStableFunc(s.Sections, func(a, b StalledSection) int { return cmp.Compare(b.For, a.For) })
	return s
}

// stackTexts keeps the texts of stacks, since many sections may have the same.
type stackTexts map[[maxStack]uintptr]string

func (m stackTexts) of(pcs []uintptr) string {
	var key [maxStack]uintptr
	copy(key[:], pcs)
	s, ok := m[key]
	if !ok {
		s = formatStack(pcs)
		m[key] = s
	}
	return s
}
