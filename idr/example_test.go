package idr_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
)

type session struct {
	id   int
	user string
}

func ExampleIDR() {
	var sessions idr.IDR[session]
	for _, user := range []string{"ada", "ben", "eve"} {
		id, err := sessions.Alloc(&session{user: user})
		fmt.Println(id, err)
	}
	fmt.Println(sessions.Find(1).user)
	fmt.Println(sessions.Remove(1).user, "left")
	fmt.Println(sessions.Find(1) == nil)
	id, _ := sessions.Alloc(&session{user: "dan"}) // the lowest free id
	fmt.Println("dan has", id)
	for id, s := range sessions.All() {
		fmt.Println(id, s.user)
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 2 <nil>
	// ben
	// ben left
	// true
	// dan has 1
	// 0 ada
	// 1 dan
	// 2 eve
}

func ExampleIDR_AllocRange() {
	var x idr.IDR[string]
	s := "a well-known port"
	for range 3 {
		fmt.Println(x.AllocRange(&s, 1022, 1023))
	}
	// Output:
	// 1022 <nil>
	// 1023 <nil>
	// 0 idr: no free id in the range
}

// Ids that are not soon given out again, as for processes or timers.
func ExampleIDR_AllocCyclic() {
	var x idr.IDR[string]
	s := "a process"
	for range 5 {
		id, _ := x.AllocCyclic(&s, 300, 302)
		fmt.Print(id, " ")
		x.Remove(id)
	}
	// Output: 300 301 302 300 301
}

// An object that has its id inside is complete before anybody can find it.
func ExampleIDR_AllocFunc() {
	var x idr.IDR[session]
	id, err := x.AllocFunc(1, 100, func(id int) *session {
		return &session{id: id, user: "ada"}
	})
	fmt.Println(id, err, *x.Find(id))
	_, err = x.AllocFunc(1, 100, func(id int) *session { return nil })
	fmt.Println(errors.Is(err, idr.ErrAborted), x.Len())
	// Output:
	// 1 <nil> {1 ada}
	// true 1
}

// Reserving an id first, and publishing the object when it is ready.
func ExampleIDR_Replace() {
	var x idr.IDR[session]
	id, _ := x.Alloc(nil)
	fmt.Println(id, x.Find(id), x.Len())
	old, err := x.Replace(id, &session{id: id, user: "ada"})
	fmt.Println(old, err, x.Find(id).user)
	// Output:
	// 0 <nil> 1
	// <nil> <nil> ada
}

func ExampleIDR_CompareAndSwap() {
	var x idr.IDR[string]
	draft, final := "draft", "final"
	x.Insert(7, &draft)
	fmt.Println(x.CompareAndSwap(7, &draft, &final), x.CompareAndSwap(7, &draft, &final))
	fmt.Println(*x.Find(7))
	// Output:
	// true false
	// final
}

// An object that is recycled must not be while a reader has it in hand: readers find it in a read
// section, and it is removed by way of the section's domain.
func ExampleIDR_RemoveRetire() {
	d := rcu.New()
	var x idr.IDR[session]
	id, _ := x.Alloc(&session{user: "ada"})

	section := d.ReadLock()
	s := x.Find(id)
	x.RemoveRetire(d, id, func(s *session) { s.user = "nobody" })
	fmt.Println(x.Find(id) == nil, s.user) // not found any more, and still whole
	fmt.Println(x.Insert(id, nil))         // nor is its id somebody else's
	section.Unlock()

	d.Barrier(context.Background())
	fmt.Println(s.user, x.Len())
	d.Close(context.Background())
	// Output:
	// true ada
	// idr: the id is taken
	// nobody 0
}

// A walk in steps, with what one likes in between.
func ExampleIDR_Next() {
	var x idr.IDR[string]
	for _, id := range []int{3, 70, 1 << 20} {
		name := fmt.Sprint("number ", id)
		x.Insert(id, &name)
	}
	for id, v, ok := x.Next(0); ok; id, v, ok = x.Next(id + 1) {
		fmt.Println(id, *v)
	}
	// Output:
	// 3 number 3
	// 70 number 70
	// 1048576 number 1048576
}

func ExampleIDR_From() {
	var x idr.IDR[string]
	s := "something"
	for id := range 10 {
		x.Insert(id*10, &s)
	}
	for id := range x.From(45) {
		if id > 70 {
			break
		}
		x.Remove(id) // the body may change what it walks over
		fmt.Print(id, " ")
	}
	fmt.Println(x.Len())
	// Output: 50 60 70 7
}

func ExampleIDA() {
	var ports idr.IDA
	fmt.Println(ports.AllocRange(1024, 65535))
	fmt.Println(ports.AllocN(3, 1024, 1027))
	fmt.Println(ports.AllocN(1, 1024, 1027))
	fmt.Println(ports.Free(1025), ports.Free(1025))
	fmt.Println(ports.Contains(1025), ports.Len())
	for id, ok := ports.Next(0); ok; id, ok = ports.Next(id + 1) {
		fmt.Println(id)
	}
	// Output:
	// 1024 <nil>
	// [1025 1026 1027] <nil>
	// [] idr: no free id in the range
	// <nil> idr: no such id
	// false 3
	// 1024
	// 1026
	// 1027
}

func ExampleRegistry() {
	d := rcu.New()
	released := func(s *session) { fmt.Println(s.user, "is released") }
	sessions := idr.NewRegistry(d, released)
	ada, _ := sessions.Add(&session{user: "ada"})

	section := d.ReadLock()
	o, err := sessions.Obtain(ada)
	fmt.Println(o.Value().user, err)
	section.Unlock()

	err = sessions.Remove(ada)
	d.Barrier(context.Background()) // for the example: release runs some time later
	fmt.Println("removed:", err)

	// The slot is used again. The old handle does not find what is there now.
	ben, _ := sessions.Add(&session{user: "ben"})
	fmt.Println(ben.Slot() == ada.Slot(), ben == ada)
	section = d.ReadLock()
	_, err = sessions.Obtain(ada)
	fmt.Println(err)
	_, err = sessions.Obtain(12345)
	fmt.Println(err)
	section.Unlock()
	// Output:
	// ada <nil>
	// ada is released
	// removed: <nil>
	// true false
	// idr: the object was removed
	// idr: no such id
}

// The order that lookups have to keep: enter the section, obtain, check what can be checked without
// the lock, lock, and know from Lock that the object is still there.
func ExampleObject_Lock() {
	d := rcu.New()
	sessions := idr.NewRegistry[session](d, nil)
	h, _ := sessions.Add(&session{user: "ada"})

	rename := func(user string) error {
		section := d.ReadLock()
		defer section.Unlock()
		o, err := sessions.Obtain(h)
		if err != nil {
			return err
		}
		if err := o.Lock(); err != nil {
			return err
		}
		defer o.Unlock()
		o.Value().user = user
		return nil
	}
	fmt.Println(rename("ben"))
	sessions.Remove(h)
	fmt.Println(rename("eve"))
	// Output:
	// <nil>
	// idr: the object was removed
}

// A reference keeps an object in use after the end of the section.
func ExampleObject_Get() {
	d := rcu.New()
	sessions := idr.NewRegistry(d, func(s *session) { fmt.Println(s.user, "is released") })
	h, _ := sessions.Add(&session{user: "ada"})

	section := d.ReadLock()
	o, _ := sessions.Obtain(h)
	fmt.Println("got a reference:", o.Get())
	section.Unlock()

	sessions.Remove(h)
	d.Barrier(context.Background())
	fmt.Println(o.Value().user, "is still in use")
	o.Put()
	d.Barrier(context.Background())
	fmt.Println("got a reference:", o.Get())
	// Output:
	// got a reference: true
	// ada is still in use
	// ada is released
	// got a reference: false
}

// Where all CPUs take ids and give them back all the time, and any id will do, a Pool saves the way to
// the IDA. Ids that lie in it are taken as far as the IDA knows.
func ExampleIDA_cached() {
	var ids idr.IDA
	var cache percpu.Pool[int]
	cache.New = func() int {
		batch, err := ids.AllocN(16, 0, 1<<20)
		if err != nil {
			panic(err)
		}
		for _, id := range batch[1:] {
			cache.Put(id)
		}
		return batch[0]
	}
	a, b := cache.Get(), cache.Get()
	fmt.Println(a != b, ids.Contains(a), ids.Contains(b))
	cache.Put(a)
	cache.Put(b)
	// At the end, what is in the Pool goes back.
	cache.Drain(func(id int) { ids.Free(id) })
	fmt.Println(ids.Len())
	// Output:
	// true true true
	// 0
}
