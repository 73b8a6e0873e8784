package rcu

import (
	"context"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	d := New()
	ctx := context.Background()
	if err := d.Synchronize(ctx); err != nil {
		t.Fatal(err)
	}
	r := d.NewReader()
	g := d.ReadLock()
	r.Lock()
	c, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	if err := d.Synchronize(c); err == nil {
		t.Fatal("no error")
	}
	cancel()
	r.Unlock()
	c, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
	if err := d.Synchronize(c); err == nil {
		t.Fatal("no error")
	}
	cancel()
	ran := 0
	d.Call(func() { ran++ })
	var h Head
	d.CallHead(&h, func(*Head) { ran++ })
	Retire(d, 3, func(n int) { ran += n })
	g.Unlock()
	if err := d.Barrier(ctx); err != nil {
		t.Fatal(err)
	}
	if ran != 5 {
		t.Fatal(ran)
	}
	t.Logf("%+v", d.Stats())
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	t.Log(d.Synchronize(ctx))
}
