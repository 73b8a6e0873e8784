package tracer

// This file uses unsafe to copy values as they lie in memory, without looking at their fields. The
// values have no pointers, and are read by the process that wrote them.

import (
	"reflect"
	"unsafe"
)

// bytesOf returns the memory of v.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// decode returns the T whose bytes payload has.
func decode[T any](payload []byte) any {
	var v T
	copy(bytesOf(&v), payload)
	return v
}

// pointerIn returns where a T has a pointer, "" if nowhere.
func pointerIn[T any]() string {
	typ := reflect.TypeFor[T]()
	return pointerInType(typ, typ.String())
}

func pointerInType(typ reflect.Type, name string) string {
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if where := pointerInType(f.Type, name+"."+f.Name); where != "" {
				return where
			}
		}
		return ""
	case reflect.Array:
		return pointerInType(typ.Elem(), name+"[]")
	case reflect.Pointer, reflect.UnsafePointer, reflect.String, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface:
		return name + " is a " + typ.String()
	}
	return ""
}
