// Package copied copies what must not be copied; go vet has to find each.
package copied

import "github.com/quiesce-go/quiesce/percpu"

func counter(a, b *percpu.Counter) {
	*a = *b
}

func words(a, b *percpu.Words) {
	*a = *b
}
