//go:build !invariants

package idr

const invariants = false
