package seqlock

import (
	"fmt"
	"reflect"
	"sync"
)

// clean holds the types that were found to hold no pointers, as keys.
var clean sync.Map

// mustHoldNoPointers panics if t, which is to be the T of a holder, holds
// pointers. It walks each type once.
func mustHoldNoPointers(holder string, t reflect.Type) {
	if _, ok := clean.Load(t); ok {
		return
	}
	if path, kind, ok := findPointer(t); ok {
		panic(fmt.Sprintf("seqlock: a %s cannot hold a %v, as T%s is or holds a pointer: %v", holder, t, path, kind))
	}
	clean.Store(t, nil)
}

// findPointer returns the path from a t to the first pointer in it, and that
// one's type.
func findPointer(t reflect.Type) (path string, p reflect.Type, ok bool) {
	switch t.Kind() {
	case reflect.Bool, reflect.Uintptr,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "", nil, false
	case reflect.Array:
		if t.Len() == 0 {
			return "", nil, false
		}
		path, p, ok = findPointer(t.Elem())
		return "[0]" + path, p, ok
	case reflect.Struct:
		for f := range t.Fields() {
			if path, p, ok = findPointer(f.Type); ok {
				return "." + f.Name + path, p, true
			}
		}
		return "", nil, false
	}
	return "", t, true
}
