// Package cputime tells what a program has cost the processors, for reports that have more to show
// than the time that passed.
package cputime
