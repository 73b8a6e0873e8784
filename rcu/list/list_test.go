package list_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/rcu/list"
)

// A model is a List and what has to be in it.
type model struct {
	l        list.List[int]
	objects  []*int
	elements []*list.Element[int]
	made     int
}

func (m *model) object() *int {
	m.made++
	v := m.made
	return &v
}

// do does one operation of several, at a place between 0 and the length.
func (m *model) do(op, place int) error {
	n := len(m.objects)
	if op %= 6; n == 0 && op > 1 {
		op %= 2
	}
	at := place % max(n, 1)
	add := func(i int, v *int, e *list.Element[int]) {
		m.objects = slices.Insert(m.objects, i, v)
		m.elements = slices.Insert(m.elements, i, e)
	}
	v := m.object()
	switch op {
	case 0:
		add(0, v, m.l.PushFront(v))
	case 1:
		add(n, v, m.l.PushBack(v))
	case 2:
		add(at, v, m.l.InsertBefore(v, m.elements[at]))
	case 3:
		add(at+1, v, m.l.InsertAfter(v, m.elements[at]))
	case 4:
		if old := m.l.Remove(m.elements[at]); old != m.objects[at] {
			return fmt.Errorf("Remove gave %d, not %d", *old, *m.objects[at])
		}
		m.objects = slices.Delete(m.objects, at, at+1)
		m.elements = slices.Delete(m.elements, at, at+1)
	case 5:
		if old := m.l.Replace(m.elements[at], v); old != m.objects[at] {
			return fmt.Errorf("Replace gave %d, not %d", *old, *m.objects[at])
		}
		m.objects[at] = v
	}
	return m.compare()
}

func (m *model) compare() error {
	m.l.Check()
	if got := slices.Collect(m.l.All()); !slices.Equal(got, m.objects) {
		return fmt.Errorf("All gave %v, want %v", values(got), values(m.objects))
	}
	if got := slices.Collect(m.l.Elements()); !slices.Equal(got, m.elements) {
		return fmt.Errorf("Elements gave %v, want %v", got, m.elements)
	}
	if n := m.l.Len(); n != len(m.objects) {
		return fmt.Errorf("Len is %d, want %d", n, len(m.objects))
	}
	// By hand, in both directions.
	i := 0
	for e := m.l.Front(); e != nil; e = e.Next() {
		if i >= len(m.elements) || e != m.elements[i] || e.Value() != m.objects[i] {
			return fmt.Errorf("Next leads elsewhere at %d", i)
		}
		i++
	}
	for e := m.l.Back(); e != nil; e = e.Prev() {
		if i--; i < 0 || e != m.elements[i] {
			return fmt.Errorf("Prev leads elsewhere at %d", i)
		}
	}
	if i != 0 {
		return fmt.Errorf("Prev ends before %d", i)
	}
	return nil
}

func values(p []*int) (v []int) {
	for _, p := range p {
		v = append(v, *p)
	}
	return v
}

func TestModel(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		m := new(model)
		for range 200 {
			if err := m.do(rng.IntN(6), rng.IntN(1000)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// Each byte of the input is an operation and its place.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Add([]byte("insert, remove and replace at all sorts of places"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := new(model)
		for i, op := range ops[:min(len(ops), 300)] {
			if err := m.do(int(op), int(op)/6+i); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// of returns a List of the numbers from 0 to n-1.
func of(n int) (l *list.List[int], elements []*list.Element[int]) {
	l = new(list.List[int])
	for i := range n {
		elements = append(elements, l.PushBack(&i))
	}
	return l, elements
}

// A walk stands on an Element while it is removed, what follows it too, and others come.
func TestAll_Removed(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(l *list.List[int], e []*list.Element[int]) // while the walk is at 1
		want   string
	}{
		{"its own", func(l *list.List[int], e []*list.Element[int]) { l.Remove(e[1]) }, "[0 1 2 3 4]"},
		{"the one before", func(l *list.List[int], e []*list.Element[int]) { l.Remove(e[0]) }, "[0 1 2 3 4]"},
		{"the next", func(l *list.List[int], e []*list.Element[int]) { l.Remove(e[2]) }, "[0 1 3 4]"},
		{"its own, then the next", func(l *list.List[int], e []*list.Element[int]) { l.Remove(e[1]); l.Remove(e[2]) }, "[0 1 2 3 4]"},
		{"the next, then its own", func(l *list.List[int], e []*list.Element[int]) { l.Remove(e[2]); l.Remove(e[1]) }, "[0 1 3 4]"},
		{"the last ones", func(l *list.List[int], e []*list.Element[int]) { l.Remove(e[4]); l.Remove(e[3]) }, "[0 1 2]"},
		{"all", func(l *list.List[int], e []*list.Element[int]) {
			for _, e := range e {
				l.Remove(e)
			}
		}, "[0 1 2 3 4]"},
		{"all from behind", func(l *list.List[int], e []*list.Element[int]) {
			for _, e := range slices.Backward(e) {
				l.Remove(e)
			}
		}, "[0 1]"},
		{"insertion", func(l *list.List[int], e []*list.Element[int]) {
			l.InsertBefore(new(int), e[1])
			*l.InsertAfter(new(int), e[1]).Value() = 9
			l.PushFront(new(int))
		}, "[0 1 9 2 3 4]"},
		{"replacement", func(l *list.List[int], e []*list.Element[int]) {
			v := 9
			l.Replace(e[2], &v)
		}, "[0 1 9 3 4]"},
	} {
		l, e := of(5)
		var got []int
		for v := range l.All() {
			if *v == 1 && len(got) == 1 {
				test.change(l, e)
				l.Check()
			}
			got = append(got, *v)
		}
		if s := fmt.Sprint(got); s != test.want {
			t.Errorf("%s: the walk found %s, want %s", test.name, s, test.want)
		}
	}
}

func TestAll_Break(t *testing.T) {
	l, _ := of(5)
	for range l.All() {
		break
	}
	for range l.Elements() {
		break
	}
	var zero list.List[int]
	for range zero.All() {
		t.Error("an object in the zero List")
	}
	if zero.Len() != 0 || zero.Front() != nil || zero.Back() != nil {
		t.Error("the zero List is not empty")
	}
}

func TestMisuse(t *testing.T) {
	l, e := of(3)
	other, _ := of(1)
	gone := e[1]
	l.Remove(gone)
	v := new(int)
	for _, test := range []struct {
		do   func()
		want string
	}{
		{func() { l.Remove(gone) }, "list: Remove with an Element that was removed already"},
		{func() { l.Replace(gone, v) }, "list: Replace with an Element that was removed already"},
		{func() { l.InsertBefore(v, gone) }, "list: InsertBefore with an Element that was removed already"},
		{func() { l.InsertAfter(v, gone) }, "list: InsertAfter with an Element that was removed already"},
		{func() { other.Remove(e[0]) }, "list: Remove with an Element of another List"},
		{func() { other.InsertAfter(v, e[0]) }, "list: InsertAfter with an Element of another List"},
		{func() { l.Remove(nil) }, "list: Remove with a nil Element"},
		{func() { l.PushBack(nil) }, "list: PushBack of a nil pointer"},
		{func() { l.PushFront(nil) }, "list: PushFront of a nil pointer"},
		{func() { l.InsertBefore(nil, e[0]) }, "list: InsertBefore of a nil pointer"},
		{func() { l.Replace(e[0], nil) }, "list: Replace of a nil pointer"},
	} {
		func() {
			defer func() {
				if msg := recover(); msg != test.want {
					t.Errorf("panic %v, want %q", msg, test.want)
				}
			}()
			test.do()
		}()
		l.Check() // Misuse changes nothing.
		if got := fmt.Sprint(values(slices.Collect(l.All()))); got != "[0 2]" || other.Len() != 1 {
			t.Fatalf("after %q: %s", test.want, got)
		}
	}
}

func TestAllocs(t *testing.T) {
	l, e := of(10)
	v := new(int)
	for what, want := range map[string]struct {
		n  float64
		do func()
	}{
		"a walk":   {0, func() { sum(l) }},
		"Replace":  {0, func() { l.Replace(e[0], v) }},
		"PushBack": {1, func() { l.Remove(l.PushBack(v)) }},
	} {
		if n := testing.AllocsPerRun(100, want.do); n != want.n {
			t.Errorf("%s allocates %v times, want %v", what, n, want.n)
		}
	}
}

func sum(l *list.List[int]) (s int) {
	for v := range l.All() {
		s += *v
	}
	return s
}

func TestVet_Copies(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command to look for copies with: %v", err)
	}
	out, err := exec.Command(goTool, "vet", "-copylocks", "./testdata/copied").CombinedOutput()
	for _, v := range []string{"y", "z"} {
		if err == nil || !strings.Contains(string(out), "assignment copies lock value to "+v) {
			t.Errorf("go vet does not find the copy %s: %v\n%s", v, err, out)
		}
	}
}
