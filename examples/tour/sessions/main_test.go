package main

import "testing"

func Example() {
	main()
	// Output:
	// alice: 2 <nil>
	// to be used again: 1
	// bob: 1 <nil>
	// alice is gone: true
}

// TestRequest_Allocations: a request finds, locks and leaves a session without the heap.
func TestRequest_Allocations(t *testing.T) {
	s := newServer()
	r := s.domain.NewReader()
	defer r.Close()
	h, err := s.login("carol")
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.request(r, h); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
