// Package copies copies what must not be copied, for vet to see.
package copies

import "github.com/quiesce-go/quiesce/seqlock"

func copyCount(c *seqlock.Count) { d := *c; _ = &d }

func copyLock(l *seqlock.Lock) { d := *l; _ = &d }

func copyValue(v *seqlock.Value[int]) { d := *v; _ = &d }

func copyLatch(l *seqlock.Latch[int]) { d := *l; _ = &d }
