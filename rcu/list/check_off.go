//go:build !invariants

package list

const invariants = false
