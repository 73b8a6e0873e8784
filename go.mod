module github.com/quiesce-go/quiesce

go 1.26.0

require (
	github.com/klauspost/cpuid/v2 v2.4.2
	go.uber.org/atomic v1.12.0
	golang.org/x/sys v0.50.0
)
