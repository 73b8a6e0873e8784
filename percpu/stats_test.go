package percpu_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/percpu"
)

// TestStats: cells are counted while their owner is reachable.
func TestStats(t *testing.T) {
	for tries := 0; ; tries++ { // other tests' cells may be collected meanwhile
		if got := statsOnce(t); got == "" {
			break
		} else if tries == 100 {
			t.Fatal(got)
		}
	}
	u := percpu.Stats()
	if u.Columns != asm.Columns() || u.Mapped < u.Bytes || !json.Valid([]byte(u.String())) || !strings.Contains(u.String(), u.Tier) {
		t.Errorf("%+v is %q", u, u)
	}
}

// statsOnce makes cells and gives them up again. It returns what was not as it should be.
func statsOnce(t *testing.T) string {
	collect(t)
	before := percpu.Stats()
	counters := make([]percpu.Counter, 1000)
	words := percpu.NewWords(100) // rounded up to 128
	for i := range counters {
		counters[i].Inc()
	}
	u := percpu.Stats()
	if d := u.Cells - before.Cells; d != 1000+128 || u.Bytes != 8*u.Cells*u.Columns {
		return fmt.Sprintf("1,000 Counters and 100 Words: %d more cells; %+v", d, u)
	}
	words.Add(0, 1)
	counters[999].Inc()
	clear(counters)
	counters, words = nil, nil
	collect(t)
	if now := percpu.Stats(); now.Cells > before.Cells {
		return fmt.Sprintf("%d cells before, %d after", before.Cells, now.Cells)
	}
	return ""
}
