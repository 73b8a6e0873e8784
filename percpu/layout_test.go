package percpu

import (
	"testing"
	"unsafe"
)

// TestFault_P12: what belongs to one CPU shares no pair of cache lines with what
// belongs to another, whatever the type and wherever the allocator puts it.
func TestFault_P12(t *testing.T) {
	type withPointer struct{ P *int }
	check(t, new(localSlot[withPointer]), func(s *localSlot[withPointer]) (first, last uintptr) {
		return unsafe.Offsetof(s.value), unsafe.Offsetof(s.wake) + unsafe.Sizeof(s.wake)
	})
	check(t, new(localSlot[[3]byte]), func(s *localSlot[[3]byte]) (first, last uintptr) {
		return unsafe.Offsetof(s.value), unsafe.Offsetof(s.wake) + unsafe.Sizeof(s.wake)
	})
	check(t, new(poolStack[withPointer]), func(s *poolStack[withPointer]) (first, last uintptr) {
		return unsafe.Offsetof(s.n), unsafe.Offsetof(s.items) + unsafe.Sizeof(s.items)
	})
	for _, n := range []int{8, 64, 192} {
		stacks := make([]poolStack[withPointer], n)
		for i := range n - 1 {
			a, b := uintptr(unsafe.Pointer(&stacks[i].items)), uintptr(unsafe.Pointer(&stacks[i+1].n))
			if (a+unsafe.Sizeof(stacks[i].items)-1)/128 >= b/128 || b%8 != 0 {
				t.Errorf("stacks %d and %d of %d are at %#x and %#x", i, i+1, n, a, b)
			}
		}
	}
}

// check looks at the padding around what a struct is for, from offset first to last.
func check[S any](t *testing.T, s *S, used func(*S) (first, last uintptr)) {
	t.Helper()
	first, last := used(s)
	// Before one and behind the other there are 128 bytes at least in an array; alone,
	// 112 keep out all but a neighbour's last words.
	if before, behind := first, unsafe.Sizeof(*s)-last; before < 112 || behind < 112 || before+behind < 128 {
		t.Errorf("%T has %d bytes before and %d behind what it is for", *s, before, behind)
	}
}
