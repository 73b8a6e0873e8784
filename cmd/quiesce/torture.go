package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/rcu/rcutest"
)

// mutantVariable is where a build with the tag quiesce_mutant looks for the fault that it is to have.
const mutantVariable = "QUIESCE_MUTANT"

// mutants are the faults of package rcu that a torture can see.
var mutants = []string{
	"earlyfinish", "gpbarrier", "immortal", "join", "lockedcall", "lockedregister", "lostbatch", "nestrefresh", "nodeadlock", "noedge",
	"nofence", "noflip", "onephase", "skipslot",
}

// parseTorture reads the arguments of torture. It returns no tiers if all are to be used.
func parseTorture(args []string) (cfg rcutest.Config, tiers []tier.Tier, mutant string, err error) {
	cfg = rcutest.Config{Duration: 10 * time.Second, LongestSleep: 20 * time.Millisecond, Storm: true}
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.DurationVar(&cfg.Duration, "time", cfg.Duration, "")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "")
	flags.Func("tier", "", func(name string) error {
		tiers = nil
		if name == "all" {
			return nil
		}
		for _, t := range allTiers {
			if t.String() == name {
				tiers = []tier.Tier{t}
				return nil
			}
		}
		return errors.New("want all, rseq, pinned or shared")
	})
	flags.Func("readers", "", func(kinds string) error {
		switch kinds {
		case "both":
			cfg.Kinds = rcutest.BothKinds
		case "reader":
			cfg.Kinds = rcutest.Readers
		case "guard":
			cfg.Kinds = rcutest.Guards
		default:
			return errors.New("want both, reader or guard")
		}
		return nil
	})
	flags.DurationVar(&cfg.LongestSleep, "sleep", cfg.LongestSleep, "")
	flags.DurationVar(&cfg.Patience, "patience", 30*time.Second, "")
	calm := flags.Bool("calm", false, "")
	debug := flags.Bool("debug", false, "")
	lazy := flags.Duration("lazy", 0, "")
	pending := flags.Int("pending", 0, "")
	flags.StringVar(&mutant, "mutant", "", "")
	if err := flags.Parse(args); err != nil {
		return cfg, nil, "", err
	}
	cfg.Storm = !*calm
	cfg.Options = []rcu.Option{rcu.WithLazy(*lazy), rcu.WithMaxPending(*pending)}
	if *debug {
		cfg.Options = append(cfg.Options, rcu.WithDebug())
	}
	if cfg.Duration == 0 || cfg.LongestSleep == 0 { // which mean something else in a Config
		cfg.Duration, cfg.LongestSleep = orNone(cfg.Duration), orNone(cfg.LongestSleep)
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case cfg.Patience <= 4*max(cfg.LongestSleep, 0):
		err = errors.New("-patience has to be above four times -sleep")
	case mutant == "":
	case !slices.Contains(mutants, mutant):
		err = fmt.Errorf("no mutant %q, there are %s", mutant, strings.Join(mutants, ", "))
	case !mutable:
		err = fmt.Errorf("this build has no mutants: go run -tags quiesce_mutant ./cmd/quiesce torture -mutant %s", mutant)
	}
	return cfg, tiers, mutant, err
}

func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// torture carries out the command torture and returns the exit status.
func torture(args []string, stdout, stderr io.Writer) int {
	cfg, tiers, mutant, err := parseTorture(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		return misuse(stderr, "torture: %v", err)
	}
	if mutant != "" && os.Getenv(mutantVariable) != mutant {
		return again(mutant, args, stdout, stderr)
	}
	rotate, end, err := switchTiers(tiers)
	if err != nil {
		fmt.Fprintln(stderr, "quiesce: torture:", err)
		return 1
	}
	defer end()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg.Progress = func(r rcutest.Report) {
		fmt.Fprintf(stderr, "%4.0fs  %d sections, %d updates, %d grace periods, %d callbacks pending, ages %v\n",
			r.Elapsed.Seconds(), r.Sections, r.Updates, r.Stats.GracePeriods, r.Stats.CallbacksPending, r.Ages)
	}
	fmt.Fprintf(stderr, "tiers %v, readers %s\n", rotate, rcu.Default().Stats().ReaderMode)
	report, err := rcutest.Run(ctx, cfg)
	if _, werr := fmt.Fprintln(stdout, report); werr != nil {
		fmt.Fprintln(stderr, "quiesce:", werr)
		return 1
	}
	if err != nil {
		fmt.Fprintf(stderr, "quiesce: torture: %v\n", err)
		return 1
	}
	return 0
}

// switchTiers goes from one of the tiers to the next all the time, until end is called. Without tiers it uses
// those that work here; it fails if the one that it was given does not.
func switchTiers(tiers []tier.Tier) (used []tier.Tier, end func(), err error) {
	asked := len(tiers) > 0
	if !asked {
		tiers = allTiers
	}
	for _, t := range tiers {
		now, undo := tier.Switch(t)
		undo()
		switch {
		case now == t:
			used = append(used, t)
		case asked:
			return nil, nil, fmt.Errorf("tier %v does not work here; quiesce info says why", t)
		}
	}
	_, undo := tier.Switch(used[0])
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; ; i++ {
			select {
			case <-over:
				return
			case <-time.After(tierTime):
				tier.Switch(used[i%len(used)])
			}
		}
	}()
	return used, func() {
		close(over)
		<-done
		undo()
	}, nil
}

// tierTime is for how long a tier is in force.
const tierTime = 300 * time.Millisecond

var allTiers = []tier.Tier{tier.Shared, tier.Pinned, tier.RSEQ}

// again runs this program as one with a fault, which package rcu has from its start or not at all.
func again(mutant string, args []string, stdout, stderr io.Writer) int {
	exe, err := os.Executable()
	if err == nil {
		cmd := exec.Command(exe, append([]string{"torture"}, args...)...)
		cmd.Env = append(os.Environ(), mutantVariable+"="+mutant)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		err = cmd.Run()
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(stderr, "quiesce: torture:", err)
		return 1
	}
	return 0
}
