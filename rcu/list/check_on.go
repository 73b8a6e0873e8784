//go:build invariants

package list

const invariants = true
