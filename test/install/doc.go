// Package install has only a test. It goes the way of somebody who has read the README and has an empty
// module: go get, from a module proxy that has nothing but this tree, then the README's first example.
// It is a module of its own, so that nobody who uses quiesce needs what makes the proxy's zip.
//
//	go test -v ./...
package install
