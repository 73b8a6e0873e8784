// Package copied copies what must not be copied; go vet has to find each.
package copied

import "github.com/quiesce-go/quiesce/percpu"

func counter(a, b *percpu.Counter) {
	*a = *b
}

func words(a, b *percpu.Words) {
	*a = *b
}

func batch(a, b *percpu.BatchCounter) {
	*a = *b
}

func local(a, b *percpu.Local[int]) {
	*a = *b
}

func pool(a, b *percpu.Pool[int]) {
	*a = *b
}

func ring(a, b *percpu.Ring) {
	*a = *b
}

func ref(a, b *percpu.Ref) {
	*a = *b
}

func rwmutex(a, b *percpu.RWMutex) {
	*a = *b
}
