package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/quiesce-go/quiesce/asm"
)

// A machine is what has to be known with figures.
type machine struct {
	cpu, system, commit string
	date                time.Time
	before, after       string // load averages
	modules             []string
	fast                []string // which fast paths there are
}

func thisMachine() machine {
	m := machine{cpu: cpuid.CPU.BrandName, system: runtime.GOOS, date: time.Now(), before: load()}
	if m.cpu == "" {
		m.cpu = runtime.GOARCH
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.system += " " + strings.TrimSpace(string(release))
	}
	m.commit = "unknown"
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		m.commit = strings.TrimSpace(string(out))
		// What the report itself writes does not count.
		if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/", ":!/docs/benchmarks*").Run() != nil {
			m.commit += " with changes"
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if strings.Contains(dep.Path, "/xsync/") {
				m.modules = append(m.modules, dep.Path+" "+dep.Version)
			}
		}
	}

	info, err := asm.RSEQ()
	m.fast = append(m.fast, "restartable sequences: "+orWhy("registered by "+info.Owner, err),
		"membarrier: "+orWhy("yes", asm.Membarrier()))
	var sources []string
	for _, s := range asm.Sources() {
		sources = append(sources, s.String())
	}
	m.fast = append(m.fast, "CPU number from: "+strings.Join(sources, ", "))
	return m
}

func orWhy(yes string, err error) string {
	if err != nil {
		return "no, " + err.Error()
	}
	return yes
}

// load returns the load averages of 1, 5 and 15 minutes.
func load() string {
	all, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(all)); err == nil && len(f) >= 3 {
		return strings.Join(f[:3], " ")
	}
	return "unknown"
}

// write says all that in lines, each after prefix.
func (m machine) write(w io.Writer, prefix string) {
	fmt.Fprintf(w, "%s%s, %d CPUs, %s/%s, %s, %s\n", prefix, m.cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, m.system, runtime.Version())
	fmt.Fprintf(w, "%scommit %s, %s; load averages %s before and %s after\n", prefix, m.commit, m.date.UTC().Format("2006-01-02 15:04 MST"), m.before, m.after)
	for _, line := range append(m.modules, m.fast...) {
		fmt.Fprintf(w, "%s%s\n", prefix, line)
	}
}
