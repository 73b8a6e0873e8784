// Package lockprofile tells how much of a program's time went into locks: what the measurements of the
// workloads show before and after.
package lockprofile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime/pprof"
	"strings"
)

// Share runs f, and returns how much of its CPU time, in percent, went into the slow ways of mutexes:
// waiting, parking, and waking those who do. It is not a number if the profile has no samples, because
// f was too short or the platform has no profiles. The error is that of pprof, which makes one profile
// at a time.
func Share(f func()) (float64, error) {
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		return 0, err
	}
	f()
	pprof.StopCPUProfile()
	zipped, err := gzip.NewReader(&b)
	if err != nil {
		return 0, err
	}
	raw, err := io.ReadAll(zipped)
	if err != nil {
		return 0, err
	}
	p, err := parseProfile(raw)
	if err != nil {
		return 0, err
	}
	all, in := int64(0), int64(0)
	for _, s := range p.samples {
		all += s.count
		for _, l := range s.locations {
			if p.inLock(l) {
				in += s.count
				break
			}
		}
	}
	if all == 0 {
		return math.NaN(), nil
	}
	return 100 * float64(in) / float64(all), nil
}

// inLock reports whether a location is in a slow way of a mutex, or in the scheduler, where goroutines
// that park come by. There is nothing else here for which they do.
func (p *profile) inLock(location uint64) bool {
	for _, f := range p.functions[location] {
		switch name := p.strings[p.names[f]]; {
		case strings.HasSuffix(name, "Mutex).lockSlow"), strings.HasSuffix(name, "Mutex).unlockSlow"),
			name == "runtime.mcall", name == "runtime.park_m", name == "runtime.schedule":
			return true
		}
	}
	return false
}

// A profile is what there has to be known of one: the message Profile of pprof's profile.proto, and
// what is in it. The runtime can write it, but the standard library has nothing to read it.
type profile struct {
	samples   []sample
	functions map[uint64][]uint64 // by location, with what is inlined there
	names     map[uint64]uint64   // by function, an index into strings
	strings   []string
}

type sample struct {
	count     int64
	locations []uint64
}

func parseProfile(raw []byte) (*profile, error) {
	p := &profile{functions: make(map[uint64][]uint64), names: make(map[uint64]uint64)}
	err := fields(raw, func(field int, _ uint64, data []byte) error {
		switch field {
		case 2:
			var s sample
			var values []uint64
			err := fields(data, func(field int, v uint64, data []byte) error {
				switch field {
				case 1:
					s.locations = appendNumbers(s.locations, v, data)
				case 2:
					values = appendNumbers(values, v, data)
				}
				return nil
			})
			if len(values) > 0 {
				s.count = int64(values[0])
			}
			p.samples = append(p.samples, s)
			return err
		case 4:
			var id uint64
			var functions []uint64
			err := fields(data, func(field int, v uint64, data []byte) error {
				switch field {
				case 1:
					id = v
				case 4:
					return fields(data, func(field int, v uint64, _ []byte) error {
						if field == 1 {
							functions = append(functions, v)
						}
						return nil
					})
				}
				return nil
			})
			p.functions[id] = functions
			return err
		case 5:
			var id, name uint64
			err := fields(data, func(field int, v uint64, _ []byte) error {
				switch field {
				case 1:
					id = v
				case 2:
					name = v
				}
				return nil
			})
			p.names[id] = name
			return err
		case 6:
			p.strings = append(p.strings, string(data))
		}
		return nil
	})
	for _, name := range p.names {
		if name >= uint64(len(p.strings)) {
			err = errProfile
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

var errProfile = errors.New("the profile cannot be read")

// appendNumbers appends the numbers of a repeated field: one, or many that are packed in data.
func appendNumbers(to []uint64, v uint64, data []byte) []uint64 {
	if data == nil {
		return append(to, v)
	}
	for len(data) > 0 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			break
		}
		to, data = append(to, v), data[n:]
	}
	return to
}

// fields calls f for each field of a protocol buffer's message: with a number, or with data that is not
// nil.
func fields(raw []byte, f func(field int, v uint64, data []byte) error) error {
	for len(raw) > 0 {
		key, n := binary.Uvarint(raw)
		if n <= 0 {
			return errProfile
		}
		raw = raw[n:]
		v, n := binary.Uvarint(raw)
		if n <= 0 {
			return errProfile
		}
		raw = raw[n:]
		data := []byte(nil)
		switch key & 7 {
		case 0:
		case 2:
			if v > uint64(len(raw)) {
				return errProfile
			}
			data = raw[:v:v]
			raw = raw[v:]
		default: // not in this message
			return errProfile
		}
		if err := f(int(key>>3), v, data); err != nil {
			return err
		}
	}
	return nil
}
