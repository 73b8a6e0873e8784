package sysv_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quiesce-go/quiesce/examples/sem/sysv"
	"github.com/quiesce-go/quiesce/rcu"
)

func ExampleThread_Op() {
	table := sysv.New(rcu.New(), sysv.DefaultLimits, nil)
	th := table.NewOwner(sysv.Credentials{PID: 1, UID: 1000, GID: 100}).NewThread()
	defer th.Close()
	ctx := context.Background()
	id, err := th.Get(sysv.Private, 2, sysv.Create|0o600)
	fmt.Println(err)
	fmt.Println(th.Op(ctx, id, []sysv.Op{{Num: 0, Delta: 3}, {Num: 1, Delta: 1}}))
	fmt.Println(th.Op(ctx, id, []sysv.Op{{Num: 0, Delta: -1}, {Num: 1, Delta: -2, Flags: sysv.NoWait}}))
	fmt.Println(th.GetAll(id)) // neither was done
	fmt.Println(th.Remove(id))
	fmt.Println(th.Op(ctx, id, []sysv.Op{{Num: 0, Delta: 1}}))
	// Output:
	// <nil>
	// <nil>
	// sysv: EAGAIN: cannot be done now
	// [3 1] <nil>
	// <nil>
	// sysv: EIDRM: the array was removed
}

// What an Owner took with Undo is given back when it exits.
func ExampleOwner_Exit() {
	ctx := context.Background()
	table := sysv.New(rcu.New(), sysv.DefaultLimits, nil)
	who := sysv.Credentials{PID: 1, UID: 1000, GID: 100}
	th := table.NewOwner(who).NewThread()
	defer th.Close()
	id, _ := th.Get(sysv.Private, 1, sysv.Create|0o600)
	th.SetVal(id, 0, 1)

	crashing := table.NewOwner(who)
	worker := crashing.NewThread()
	worker.Op(ctx, id, []sysv.Op{{Delta: -1, Flags: sysv.Undo}})
	worker.Close()

	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	take := []sysv.Op{{Delta: -1}}
	fmt.Println(errors.Is(th.Op(ctx, id, take), sysv.EAGAIN))
	crashing.Exit()
	fmt.Println(th.Op(context.Background(), id, take))
	// Output:
	// true
	// <nil>
}
