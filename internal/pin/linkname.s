//go:build gc && !purego && !go1.28

// This file lets the package declare functions without bodies on every
// architecture: pin_unsafe.go pulls them out of the runtime.
