package list_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/rcu/list"
)

// Handlers are called in order, without a lock, while others come and go. One that goes is closed when no
// call can still be in it.
func Example() {
	type handler struct{ name string }
	var (
		domain   = rcu.New()
		mu       sync.Mutex // of those who change handlers
		handlers list.List[handler]
	)
	mu.Lock()
	handlers.PushBack(&handler{"log"})
	audit := handlers.PushFront(&handler{"audit"})
	mu.Unlock()

	g := domain.ReadLock()
	for h := range handlers.All() {
		fmt.Println("call", h.name)
	}

	mu.Lock()
	h := handlers.Remove(audit)
	mu.Unlock()
	rcu.Retire(domain, h, func(h *handler) { fmt.Println("close", h.name) })

	fmt.Println("left:", handlers.Len())
	g.Unlock()
	domain.Close(context.Background())
	// Output:
	// call audit
	// call log
	// left: 1
	// close audit
}

func show(l *list.List[string]) {
	var words []string
	for s := range l.All() {
		words = append(words, *s)
	}
	fmt.Println(strings.Join(words, " "))
}

func ExampleList() {
	a, b, c := "a", "b", "c"
	var l list.List[string]
	e := l.PushBack(&b)
	l.InsertBefore(&a, e)
	l.InsertAfter(&c, e)
	show(&l)
	l.Remove(e)
	show(&l)
	// Output:
	// a b c
	// a c
}

// A replaced object is retired as a removed one is.
func ExampleList_Replace() {
	domain := rcu.New()
	old, updated := "old", "new"
	var l list.List[string]
	e := l.PushBack(&old)
	gone := l.Replace(e, &updated)
	show(&l)
	rcu.Retire(domain, gone, func(s *string) { fmt.Println("free", *s) })
	domain.Close(context.Background())
	// Output:
	// new
	// free old
}

// A writer looks for what it removes, and may do so while it walks.
func ExampleList_Elements() {
	words := []string{"an", "is", "all", "one", "or"}
	var l list.List[string]
	for i := range words {
		l.PushBack(&words[i])
	}
	for e := range l.Elements() {
		if len(*e.Value()) == 2 {
			l.Remove(e)
		}
	}
	show(&l)
	// Output: all one
}
