package ns

import (
	"context"
	"fmt"
)

// A Task is in one namespace of its [Table] or in none. Make one with [Table.NewTask]. It is for one
// goroutine at a time. A Task that is in a namespace and is dropped without Leave keeps it for ever.
type Task struct {
	table *Table
	space *namespace // nil outside
}

// An object belongs to a namespace.
type object struct {
	value any
	free  func(any) // may be nil
}

func (o *object) release() {
	if o.free != nil {
		o.free(o.value)
	}
}

// NewTask returns a Task that is in no namespace.
func (t *Table) NewTask() *Task { return &Task{table: t} }

// Create makes a namespace and enters it. It returns ErrMember if the task is in one, and the error of the
// function that mounts.
func (k *Task) Create() (ID, error) {
	if k.space != nil {
		return 0, ErrMember
	}
	n, err := k.table.create()
	if err != nil {
		return 0, err
	}
	k.space = n
	return n.id, nil
}

// Enter enters namespace id. It returns ErrMember if the task is in one, and ErrNotFound if there is no
// such namespace, or its last task has left.
func (k *Task) Enter(id ID) error {
	if k.space != nil {
		return ErrMember
	}
	// No section: what Find returns is never used again for another namespace, and one that has users is
	// not torn down.
	n := k.table.spaces.Find(int(id))
	if n == nil || !n.enter() {
		return ErrNotFound
	}
	k.space = n
	return nil
}

// Leave leaves the namespace. The last task to leave it has it torn down, as the Table's [Strategy] says,
// and may have to wait for that. If ctx ends first, Leave returns an error that wraps ctx.Err(): the task has
// left all the same, and the namespace is torn down later. Leave returns ErrOutside if the task is in none.
//
// In a section of the Table's Domain, a Leave that waits would wait for its own caller until ctx ends.
func (k *Task) Leave(ctx context.Context) error {
	n := k.space
	if n == nil {
		return ErrOutside
	}
	k.space = nil
	return k.table.leave(ctx, n)
}

// Exit is Leave for a task that is or is not in a namespace.
func (k *Task) Exit(ctx context.Context) error {
	if k.space == nil {
		return nil
	}
	return k.Leave(ctx)
}

// ID returns the namespace that the task is in, and 0 if it is in none.
func (k *Task) ID() ID {
	if k.space == nil {
		return 0
	}
	return k.space.id
}

// Mount returns the mount of the task's namespace, which stays mounted until the task leaves, or ErrOutside.
func (k *Task) Mount() (Mount, error) {
	if k.space == nil {
		return nil, ErrOutside
	}
	return k.space.mount, nil
}

// Add gives v to the task's namespace and returns its id there, the lowest that is free. free, which may be
// nil, is called once with v: a grace period after Remove, or when the namespace is torn down.
func (k *Task) Add(v any, free func(any)) (int, error) {
	if k.space == nil {
		return 0, ErrOutside
	}
	return k.space.objects.Alloc(&object{v, free})
}

// Object returns the object with the given id in the task's namespace. Another task may remove it at any
// time, and have it released a grace period later: who needs it for longer than it takes to look at it
// calls Object in a section.
func (k *Task) Object(id int) (any, error) {
	if k.space == nil {
		return nil, ErrOutside
	}
	o := k.space.objects.Find(id)
	if o == nil {
		return nil, fmt.Errorf("%w: object %d", ErrNotFound, id)
	}
	return o.value, nil
}

// Remove takes the object with the given id from the task's namespace. It does not wait.
func (k *Task) Remove(id int) error {
	if k.space == nil {
		return ErrOutside
	}
	if !k.space.objects.RemoveRetire(k.table.domain, id, (*object).release) {
		return fmt.Errorf("%w: object %d", ErrNotFound, id)
	}
	return nil
}
