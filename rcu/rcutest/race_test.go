//go:build race

package rcutest_test

const raceEnabled = true
