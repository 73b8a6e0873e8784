package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/tier"
)

func TestInfo_JSON(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"info", "-json"}, &out, &errs); code != 0 || errs.Len() != 0 {
		t.Fatalf("exit status %d, stderr %q", code, errs.String())
	}
	d := json.NewDecoder(&out)
	var got map[string]any
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("more than one object: %v", err)
	}
	want := []string{"arch", "cpu_source", "cpus", "go", "membarrier", "os", "rseq_error", "rseq_owner", "tier"}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	for key, value := range map[string]any{
		"tier": tier.Current().String(),
		"go":   runtime.Version(),
		"os":   runtime.GOOS,
		"arch": runtime.GOARCH,
		"cpus": float64(runtime.NumCPU()),
	} {
		if got[key] != value {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
	// What it says about rseq and membarrier is what asm says.
	info, err := asm.RSEQ()
	if got["rseq_owner"] != info.Owner || (got["rseq_error"] == "") != (err == nil) {
		t.Errorf("rseq_owner %q, rseq_error %q; asm.RSEQ says %q, %v", got["rseq_owner"], got["rseq_error"], info.Owner, err)
	}
	if (got["rseq_owner"] == "") == (got["rseq_error"] == "") {
		t.Errorf("rseq_owner %q and rseq_error %q: want exactly one", got["rseq_owner"], got["rseq_error"])
	}
	if works := asm.Membarrier() == nil; (got["membarrier"] == "private-expedited") != works || (got["membarrier"] == "none") == works {
		t.Errorf("membarrier is %q although asm.Membarrier says it works: %v", got["membarrier"], works)
	}
	if s := asm.Sources(); len(s) > 0 && got["cpu_source"] != s[0].String() {
		t.Errorf("cpu_source is %q, want %q", got["cpu_source"], s[0])
	}
}

func TestInfo_Text(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"info"}, &out, &errs); code != 0 || errs.Len() != 0 {
		t.Fatalf("exit status %d, stderr %q", code, errs.String())
	}
	t.Logf("\n%s", out.String())
	for _, want := range []string{
		"tier        " + tier.Current().String() + ": ",
		"CPU number  ",
		"rseq        ",
		"membarrier  ",
		fmt.Sprintf("CPUs        %d usable, %d possible\n", runtime.NumCPU(), asm.Columns()),
		fmt.Sprintf("Go          %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH),
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	_, err := asm.RSEQ()
	if says := strings.Contains(out.String(), "The rseq tier is missing: "); says != (err != nil) {
		t.Errorf("says that rseq is missing: %v; asm.RSEQ: %v", says, err)
	}
}

// TestInfo_Rejected: a source of CPU numbers that does not tell the truth is named.
func TestInfo_Rejected(t *testing.T) {
	var out bytes.Buffer
	if err := writeText(&out, report{rejected: []string{"lsl", "rdtscp"}}); err != nil {
		t.Fatal(err)
	}
	if want := "not used, for they disagree with getcpu(2), or it does not work: lsl, rdtscp\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
	if out.Reset(); writeText(&out, report{}) != nil || strings.Contains(out.String(), "not used") {
		t.Errorf("with nothing to say:\n%s", out.String())
	}
}

// TestMissing goes through machines that the test does not run on.
func TestMissing(t *testing.T) {
	why := errors.New("the reason")
	good := report{Tier: "rseq", CPUSource: "rseq", RSEQOwner: "quiesce", Membarrier: "private-expedited", OS: "linux", Arch: "amd64"}
	if got := good.missing(); got != nil {
		t.Errorf("nothing is missing, yet: %q", got)
	}
	for _, test := range []struct {
		name   string
		change func(r *report)
		want   []string // one for each paragraph
	}{
		{"kernel refuses", func(r *report) { r.rseqErr = fmt.Errorf("the reason: %w", syscall.EPERM) },
			[]string{"lets rseq(2) through", "RDPID"}},
		{"kernel refuses, RDPID", func(r *report) { r.rseqErr = syscall.ENOSYS; r.CPUSource = "rdpid" },
			[]string{"lets rseq(2) through"}},
		{"race", func(r *report) { r.rseqErr = why; r.build.race = true; r.CPUSource = "rdpid" },
			[]string{"without -race"}},
		{"purego", func(r *report) { r.rseqErr = why; r.build.purego = true; r.CPUSource = "getcpu" },
			[]string{"without the tag purego", "the fastest source is getcpu"}},
		{"glibc", func(r *report) { r.rseqErr = why; r.build.cgo = true; r.CPUSource = "rdpid" },
			[]string{"glibc 2.35 or later"}},
		{"new Go", func(r *report) { r.rseqErr = why; r.CPUSource = "rdpid" },
			[]string{"a Go release that this version of quiesce was tested with"}},
		{"386", func(r *report) { r.Arch = "386"; r.rseqErr = why; r.CPUSource = "rdpid" },
			[]string{"Linux on amd64 and arm64"}},
		{"old kernel", func(r *report) { r.membarrierErr = why },
			[]string{"Linux 4.14 or later"}},
		{"darwin", func(r *report) { r.OS = "darwin"; r.rseqErr, r.membarrierErr = why, why; r.CPUSource = "proc" },
			[]string{"Linux on amd64 and arm64", "the fastest source is proc", "Only Linux has it"}},
	} {
		r := good
		test.change(&r)
		got := r.missing()
		if len(got) != len(test.want) {
			t.Errorf("%s: %d paragraphs, want %d: %q", test.name, len(got), len(test.want), got)
			continue
		}
		var out bytes.Buffer
		if err := writeText(&out, r); err != nil {
			t.Error(err)
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) || !strings.Contains(out.String(), got[i]) {
				t.Errorf("%s: no %q in paragraph %q, or not in:\n%s", test.name, want, got[i], out.String())
			}
		}
	}
}

func TestRun_Misuse(t *testing.T) {
	for _, args := range [][]string{{}, {"infos"}, {"-json"}, {"info", "-xml"}, {"info", "extra"}, {"info", "-json", "extra"}, {"torture", "extra"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 {
			t.Errorf("%q: exit status %d, want 2", args, code)
		}
		if out.Len() != 0 || !strings.HasPrefix(errs.String(), "quiesce: ") || !strings.Contains(errs.String(), usage) {
			t.Errorf("%q: stdout %q, stderr %q; want a reason and the usage on stderr alone", args, out.String(), errs.String())
		}
	}
}

func TestRun_Help(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"info", "-h"}, {"torture", "-h"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 0 || out.String() != usage || errs.Len() != 0 {
			t.Errorf("%q: exit status %d, stdout %q, stderr %q; want 0 and the usage on stdout", args, code, out.String(), errs.String())
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRun_WriteError(t *testing.T) {
	for _, args := range [][]string{{"info"}, {"info", "-json"}} {
		var errs bytes.Buffer
		if code := run(args, fullDisk{}, &errs); code != 1 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: exit status %d, stderr %q; want 1 and the reason", args, code, errs.String())
		}
	}
}
