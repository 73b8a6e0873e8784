package idr

import "testing"

func TestSmoke(t *testing.T) {
	var x IDR[int]
	id, err := x.Alloc(new(int))
	if id != 0 || err != nil || x.Find(0) == nil {
		t.Fatal(id, err)
	}
}
