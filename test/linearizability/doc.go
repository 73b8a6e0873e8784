// Package linearizability has only tests. They run calls of package idr's types beside each other,
// write down when each began and ended and what it gave, and have porcupine search for an order of
// the calls that explains it: one in which each call takes place at one moment between its begin and
// its end. It is a module of its own, so that nobody who uses quiesce needs porcupine.
//
//	go test -v . [-runs 1000]
package linearizability
