package rcutest

import (
	"math/rand/v2"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A Structure is what a torture works on. Its methods are called by any number of goroutines at
// once, and draw what they decide by chance from rng.
type Structure interface {
	// Exchange makes fresh findable, takes another object out, so that readers that come later cannot
	// find it, and returns it; or nil if it takes none out. Updaters call it outside sections. Each
	// object that was put in is taken out at most once.
	Exchange(rng *rand.Rand, fresh *Object) (old *Object)

	// Find calls visit with objects that it finds, any number of them. Readers call it in a section.
	Find(rng *rand.Rand, visit func(*Object))
}

// A Kind is a kind of section. Kinds can be added up.
type Kind uint8

const (
	Readers   Kind = 1 << iota // by a [rcu.Reader]
	Guards                     // by [rcu.Domain.ReadLock]
	BothKinds = Readers | Guards
)

// A Config says what to torture, and how. The zero Config is a second for a Domain of its own.
type Config struct {
	// Structure is what readers and updaters work on. If nil, it is an array of a few pointers.
	Structure Structure

	// Domain is whose sections and grace periods are used. If nil, a new one is, made with Options, and is
	// closed in the end. Of one that is given, others may be readers and updaters, too.
	Domain  *rcu.Domain
	Options []rcu.Option

	// Duration is how long it takes, a second if it is 0. If it is negative, it takes until the
	// context ends.
	Duration time.Duration

	// Updates, if not 0, is after how many updates each updater stops, where a burst of them counts as one.
	// When all have, the torture ends.
	Updates int

	// Seed decides what is done. If it is 0, one is chosen, see Report.Seed.
	Seed uint64

	// Kinds are the sections to use, both if it is 0.
	Kinds Kind

	// How many goroutines read and update, four and three if 0.
	Readers, Updaters int

	// LongestSleep is how long a reader sleeps in a section at most, 2 ms if it is 0. Most
	// sleep for less, and few do at all. If it is negative, none does.
	LongestSleep time.Duration

	// Storm disturbs the whole process meanwhile: garbage collections, changes of GOMAXPROCS, and, on
	// linux, signals to all threads. Runs with a storm wait for each other.
	Storm bool

	// Patience is for how long a goroutine may be stuck in one operation before that is a failure,
	// 30 s if it is 0. It must be well above LongestSleep, of which a section has two, and what
	// else holds sections of Domain.
	Patience time.Duration

	// Progress, if not nil, is called about every second with what was done so far.
	Progress func(Report)
}

const (
	defaultDuration = time.Second
	defaultReaders  = 4
	defaultUpdaters = 3
	defaultSleep    = 2 * time.Millisecond
	defaultPatience = 30 * time.Second
)

// withDefaults returns c with what was left out. It panics if c makes no sense.
func (c Config) withDefaults() Config {
	switch {
	case c.Kinds&^BothKinds != 0:
		panic("rcutest: Config with unknown Kinds")
	case c.Readers < 0 || c.Updaters < 0 || c.Updates < 0:
		panic("rcutest: Config with a negative number")
	case c.Domain != nil && c.Options != nil:
		panic("rcutest: Config with Options for a Domain that is there")
	case c.Patience < 0:
		panic("rcutest: Config without Patience")
	}
	set := func(p *int, n int) {
		if *p == 0 {
			*p = n
		}
	}
	set(&c.Readers, defaultReaders)
	set(&c.Updaters, defaultUpdaters)
	if c.Duration == 0 {
		c.Duration = defaultDuration
		if c.Updates > 0 {
			c.Duration = -1
		}
	}
	if c.LongestSleep == 0 {
		c.LongestSleep = defaultSleep
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Kinds == 0 {
		c.Kinds = BothKinds
	}
	for c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	if c.Structure == nil {
		c.Structure = newSlots(c.Updaters)
	}
	return c
}
