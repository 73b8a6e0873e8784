package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// report is what info prints. Its exported fields are the JSON form, whose
// keys are part of the module's contract.
type report struct {
	Tier       string `json:"tier"`       // rseq, pinned or shared
	CPUSource  string `json:"cpu_source"` // the fastest; none if there is none
	RSEQOwner  string `json:"rseq_owner"` // quiesce or glibc; empty if rseq does not work
	RSEQError  string `json:"rseq_error"` // why not; empty if it works
	Membarrier string `json:"membarrier"` // private-expedited or none
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"` // that this process may use

	possible      int // CPUs that the machine may have, the number of columns of per-CPU data
	sources       []source
	rejected      []string // sources that there are and that do not tell the truth
	features      uint32   // bytes of struct rseq that are kept up to date
	rseqErr       error
	membarrierErr error
	build         build
}

// source is a way to read the CPU number and what it gave.
type source struct {
	name string
	cpu  int
	ok   bool
}

// build is how this program was built, as far as it decides about fast paths.
type build struct{ race, purego, cgo bool }

func gather() report {
	info, rseqErr := asm.RSEQ()
	r := report{
		Tier:          tier.Current().String(),
		CPUSource:     asm.SourceNone.String(),
		Membarrier:    "private-expedited",
		Go:            runtime.Version(),
		OS:            runtime.GOOS,
		Arch:          runtime.GOARCH,
		CPUs:          runtime.NumCPU(),
		possible:      asm.Columns(),
		features:      info.FeatureSize,
		rseqErr:       rseqErr,
		membarrierErr: asm.Membarrier(),
		build:         howBuilt(),
	}
	if rseqErr != nil {
		r.RSEQError = rseqErr.Error()
	} else {
		r.RSEQOwner = info.Owner
	}
	if r.membarrierErr != nil {
		r.Membarrier = "none"
	}
	for _, s := range asm.Sources() {
		cpu, ok := asm.CPUBy(s)
		r.sources = append(r.sources, source{s.String(), cpu, ok})
	}
	for _, s := range asm.Rejected() {
		r.rejected = append(r.rejected, s.String())
	}
	if len(r.sources) > 0 {
		r.CPUSource = r.sources[0].name
	}
	return r
}

func howBuilt() (b build) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "-race":
			b.race = s.Value == "true"
		case "-tags":
			b.purego = slices.Contains(strings.Split(s.Value, ","), "purego")
		case "CGO_ENABLED":
			b.cgo = s.Value == "1"
		}
	}
	return b
}

func writeJSON(w io.Writer, r report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func writeText(w io.Writer, r report) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	line("tier", "%s: per-CPU data is updated by %s", r.Tier, map[string]string{
		"rseq":   "plain instructions inside a restartable sequence",
		"pinned": "plain instructions while the scheduler's pin is held",
		"shared": "atomic instructions",
	}[r.Tier])
	var sources []string
	for _, s := range r.sources {
		if s.ok {
			sources = append(sources, fmt.Sprintf("%s (%d)", s.name, s.cpu))
		} else {
			sources = append(sources, s.name+" (failed)")
		}
	}
	if len(sources) == 0 {
		sources = []string{"no source"}
	}
	line("CPU number", "%s", strings.Join(sources, ", "))
	if len(r.rejected) > 0 {
		line("", "not used, for they disagree with getcpu(2), or it does not work: %s", strings.Join(r.rejected, ", "))
	}
	if r.rseqErr == nil {
		line("rseq", "registered by %s, %d bytes of features", r.RSEQOwner, r.features)
	} else {
		line("rseq", "none")
	}
	line("membarrier", "%s", r.Membarrier)
	line("CPUs", "%d usable, %d possible", r.CPUs, r.possible)
	line("Go", "%s %s/%s", r.Go, r.OS, r.Arch)
	for _, sentence := range r.missing() {
		fmt.Fprintf(&b, "\n%s\n", sentence)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// missing has a paragraph for each fast path that is not there: why, and what
// would bring it.
func (r report) missing() (paragraphs []string) {
	if r.rseqErr != nil {
		paragraphs = append(paragraphs, fmt.Sprintf("The rseq tier is missing: %v.\n%s", r.rseqErr, r.adviseRSEQ()))
		if r.CPUSource != asm.SourceRDPID.String() {
			paragraphs = append(paragraphs, fmt.Sprintf("A cheap CPU number is missing: the fastest source is %s.\n"+
				"Restartable sequences would bring it, or, on Linux, an amd64 processor with RDPID (AMD Zen 2, Intel Ice Lake and later).", r.CPUSource))
		}
	}
	if r.membarrierErr != nil {
		advice := "It needs Linux 4.14 or later, and a sandbox that lets membarrier(2) through."
		if r.OS != "linux" {
			advice = "Only Linux has it."
		}
		paragraphs = append(paragraphs, fmt.Sprintf("The asymmetric fence is missing, so each RCU section pays for a fence of its own: %v.\n%s", r.membarrierErr, advice))
	}
	return paragraphs
}

// adviseRSEQ says what would make restartable sequences work here.
func (r report) adviseRSEQ() string {
	var errno syscall.Errno
	switch {
	case r.OS != "linux" || r.Arch != "amd64" && r.Arch != "arm64":
		return "Only Linux on amd64 and arm64 has it."
	case r.build.race:
		return "Build without -race: under the race detector every update is atomic, so that the detector sees it."
	case r.build.purego:
		return "Build without the tag purego."
	case errors.As(r.rseqErr, &errno):
		return "It needs Linux 4.18 or later, and a sandbox (a seccomp filter, gVisor) that lets rseq(2) through."
	case r.build.cgo:
		return "A program that uses cgo needs glibc 2.35 or later, linked dynamically and with its tunable glibc.pthread.rseq on.\n" +
			"Built with CGO_ENABLED=0 it needs nothing but the kernel, 4.18 or later."
	}
	return "It needs Linux 4.18 or later and a Go release that this version of quiesce was tested with."
}
