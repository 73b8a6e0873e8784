module github.com/quiesce-go/quiesce/test/linearizability

go 1.26.0

require github.com/quiesce-go/quiesce v0.0.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/quiesce-go/quiesce => ../..
