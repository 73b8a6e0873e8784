package rcu

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
)

// WithDebug has a Domain keep the stack with which each section began, to find what else makes a program
// hang, or free what is still read:
//
//   - A second Unlock of a Guard panics, with the stacks of its ReadLock and of the first Unlock. Two sections
//     that began at the same instant may be taken for one with two Unlocks.
//   - A wait that would have to wait for a section of the calling goroutine returns [ErrDeadlock] at once,
//     with the stack of the section, and logs that. A section counts as one of the goroutine that began it,
//     even if another is to end it.
//   - A Guard that was dropped without an Unlock is logged, with the stack of its ReadLock, after the next
//     run of the garbage collector. Its section goes on, since nobody can say who still reads.
//   - Reports, of stalls and of dropped Readers, have all stacks.
//
// Sections cost some microseconds and allocate. Domains made without WithDebug pay nothing for it.
func WithDebug() Option {
	return func(d *Domain) {
		d.debug = &debugger{open: make(map[*held]struct{}), readers: make(map[*record]*debugReader)}
	}
}

// A debugger knows the open sections of a Domain with WithDebug. It does not refer to the Domain, so that
// cleanups can refer to it. The methods of a nil debugger do nothing.
type debugger struct {
	mu      sync.Mutex // innermost
	open    map[*held]struct{}
	readers map[*record]*debugReader // those with a handle
}

// A held is an open section.
type held struct {
	phase     int // of a Guard
	reader    bool
	goroutine uint64
	since     int64 // as now gives it
	stack     []uintptr
	logging   bool // that goroutine is in mayBlock, which alone uses this
}

type debugReader struct {
	created []uintptr
	section *held // nil outside
}

// A ticket is what the debugger knows of a Guard, or of a few that began at the same instant.
type ticket struct {
	phase        int
	open         []*held
	began, ended []uintptr // of the last ReadLock and Unlock
}

const maxStack = 64 // frames

// callers returns the stack of the caller's caller.
func callers() []uintptr {
	var buf [maxStack]uintptr
	return append([]uintptr(nil), buf[:runtime.Callers(3, buf[:])]...)
}

func currentGoroutine() uint64 { return goroutineID(make([]byte, idBytes)) }

func (g *debugger) beginLocked(phase int, reader bool, stack []uintptr) *held {
	h := &held{phase: phase, reader: reader, goroutine: currentGoroutine(), since: now(), stack: stack}
	g.open[h] = struct{}{}
	return h
}

// created notes that a Reader was made that uses rec.
func (g *debugger) created(rec *record) {
	if g == nil {
		return
	}
	stack := callers()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers[rec] = &debugReader{created: stack}
}

// closed notes that rec has no handle any more.
func (g *debugger) closed(rec *record) {
	if g == nil {
		return
	}
	g.end(rec)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.readers, rec)
}

// begin notes that a section of rec's Reader began, and that one before it has ended.
func (g *debugger) begin(rec *record) {
	if g == nil {
		return
	}
	stack := callers()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.readers[rec]
	delete(g.open, r.section)
	r.section = g.beginLocked(0, true, stack)
}

// end notes that the section of rec's Reader has ended, if there is one.
func (g *debugger) end(rec *record) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.readers[rec]
	delete(g.open, r.section)
	r.section = nil
}

// describe adds to sec what is known about rec's Reader and its section.
func (g *debugger) describe(rec *record, sec *StalledSection, text stackTexts) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.readers[rec]; r != nil {
		sec.Created = text.of(r.created)
		if r.section != nil {
			r.section.describe(sec, text)
		}
	}
}

func (h *held) describe(sec *StalledSection, text stackTexts) {
	sec.Began, sec.Goroutine, sec.For = text.of(h.stack), h.goroutine, since(h.since)
}

// guards returns the open Guards of a phase that began before a time.
func (g *debugger) guards(phase int, before int64, text stackTexts) (list []StalledSection) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for h := range g.open {
		if !h.reader && h.phase == phase && h.since <= before {
			var sec StalledSection
			h.describe(&sec, text)
			list = append(list, sec)
		}
	}
	return list
}

// own returns a section that the calling goroutine began, or nil.
func (g *debugger) own() *held {
	if g == nil {
		return nil
	}
	id := currentGoroutine()
	g.mu.Lock()
	defer g.mu.Unlock()
	for h := range g.open {
		if h.goroutine == id {
			return h
		}
	}
	return nil
}

// mayBlock returns why a call of what that has to wait would never end.
func (d *Domain) mayBlock(what string) error {
	h := d.debug.own()
	if h == nil || mutant == mutantNoDeadlock {
		return nil
	}
	began := formatStack(h.stack)
	if !h.logging { // else the handler waits for the Domain, and would be called again for that
		h.logging = true
		defer func() { h.logging = false }()
		d.logger().Error("rcu: "+what+" waits for a section of its own goroutine", "began", began, "waits", formatStack(callers()))
	}
	return fmt.Errorf("rcu: %s: %w: it waits for a section that its own goroutine began at\n%s", what, ErrDeadlock, indent(began))
}

// In a Domain with a debugger, guards.now is the phase of the next Guard alone: it has no counts, and each Add is
// diverted to debugAdd, which adds to the phase that it stands for.

// newTicket returns such a phase for p.
func (d *Domain) newTicket(p *phase) *phase {
	k := &ticket{}
	if p == &d.guards.phases[1] {
		k.phase = 1
	}
	t := &phase{mark: counted, of: p}
	t.Divert(func(i int, delta int64) { d.debugAdd(t, k, i, delta) })
	// The cleanup refers neither to t nor to d, which refers to t while that is the next one.
	g, log := d.debug, d.log
	runtime.AddCleanup(t, func(k *ticket) { g.dropped(k, log) }, k)
	return t
}

// debugAdd is the Add of Guards with the ticket k, whose phase is t.
func (d *Domain) debugAdd(t *phase, k *ticket, i int, delta int64) {
	if i == begins {
		d.mustBeOpen("ReadLock")
		d.replaceTicket(t)
		d.debug.guardBegins(k)
	} else {
		d.debug.guardEnds(k)
		if raceEnabled && mutant != mutantNoEdge {
			t.of.edge.Add(1) // As in Guard.Unlock, which does not know this phase.
		}
	}
	d.guardSlow(t.of, i, delta)
}

func (g *debugger) guardBegins(k *ticket) {
	stack := callers()
	g.mu.Lock()
	defer g.mu.Unlock()
	k.began = stack
	k.open = append(k.open, g.beginLocked(k.phase, false, stack))
}

func (g *debugger) guardEnds(k *ticket) {
	stack, id := callers(), currentGoroutine()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(k.open) == 0 {
		panic(fmt.Sprintf("rcu: Unlock of a Guard that was unlocked already\nbegun at\n%s\nunlocked at\n%s",
			indent(formatStack(k.began)), indent(formatStack(k.ended))))
	}
	k.ended = stack
	i := 0 // where several share the ticket, that of this goroutine
	for j, h := range k.open {
		if h.goroutine == id {
			i = j
		}
	}
	delete(g.open, k.open[i])
	k.open = append(k.open[:i], k.open[i+1:]...)
}

// dropped is the cleanup of a phase whose Guards are all gone.
func (g *debugger) dropped(k *ticket, log *slog.Logger) {
	g.mu.Lock()
	open := k.open // Nobody is left to change it.
	if mutant == mutantLockedLog {
		defer g.mu.Unlock()
	} else {
		g.mu.Unlock()
	}
	// Without mu: the handler of the log may use the Domain.
	for _, h := range open {
		orDefault(log).Error("rcu: a Guard was dropped in its section, which goes on for ever", "began", formatStack(h.stack))
	}
}

func orDefault(log *slog.Logger) *slog.Logger {
	if log != nil {
		return log
	}
	return slog.Default()
}

// formatStack renders a stack, up to the first zero, without this package's own frames on top.
func formatStack(pcs []uintptr) string {
	for i, pc := range pcs {
		if pc == 0 {
			pcs = pcs[:i]
			break
		}
	}
	var b strings.Builder
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if b.Len() > 0 || !ownFrame(f.Function) {
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

const modulePath = "github.com/quiesce-go/quiesce/"

func ownFrame(function string) bool {
	rest, ours := strings.CutPrefix(function, modulePath)
	return ours && (strings.HasPrefix(rest, "rcu.") || strings.HasPrefix(rest, "asm."))
}
