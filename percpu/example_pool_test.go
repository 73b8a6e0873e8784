package percpu_test

import (
	"bytes"
	"fmt"

	"github.com/quiesce-go/quiesce/percpu"
)

// Buffers that outlive garbage collections, and are all found again at the end.
func ExamplePool() {
	buffers := percpu.Pool[*bytes.Buffer]{New: func() *bytes.Buffer { return new(bytes.Buffer) }}

	b := buffers.Get()
	b.WriteString("hello")
	fmt.Println(b)
	b.Reset()
	buffers.Put(b)

	fmt.Println(buffers.Drain(func(b *bytes.Buffer) { fmt.Println(b.Cap() > 0) }), "buffer")
	// Output:
	// hello
	// true
	// 1 buffer
}
